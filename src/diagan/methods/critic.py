"""The second discriminator of phase 2 (Algorithm 1): trained on uniform data beside a D that sees
weighted data, so that rejection sampling can undo the bias."""

from dataclasses import dataclass

from diagan.game import Fakes, FurtherCritic, Parts


@dataclass(frozen=True)
class UnbiasedCritic:
    """Shares D's fakes, as the paper writes; the published code draws its own.

    With `reals` it is shown D's weighted reals in their place, and its logit becomes
    log p_data / p_s: the bias that the weights put in, which is what rejection has to take back.
    Flawed fakes a critic knows as such, and then rejects by their flaws; reals have none.

    Where D has BatchNorm, a weighted G fills its batches with the rare group, and a critic that
    scores reals and fakes in two forwards needs no more than the batch's statistics to tell them
    apart: its logit says little of an image. `joint` takes that way out.
    """

    fakes: Fakes = "shared"
    joint: bool = False

    def parts(self) -> Parts:
        critic = FurtherCritic("critic", self.fakes, self.joint)
        return Parts(critics=(critic,), needs_one_score_per_image="rejection sampling")
