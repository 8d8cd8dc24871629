"""A GAN as a Lightning module. What diagan adds to it are the ten lines with +."""

import copy

import torch
from pytorch_lightning import LightningModule, Trainer
from toy import BATCH, N_STEPS, OUT, adam, average, d_loss, forever, g_loss, network, points, tell
from toy import loader as loader_of

from diagan import LdrRecord, RejectionSampler, WeightedSampler, diagnose  # +

N_EPOCHS = N_STEPS // (len(points) // BATCH)


def batches(sampler=None):
    return forever(loader_of(sampler))


class GAN(LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = network(2), network(1)
        self.g_ema = copy.deepcopy(self.g)
        self.record = LdrRecord(f"{OUT}/record", n=len(points))  # +

    def configure_optimizers(self):
        return adam(self.g), adam(self.d)

    def learn(self, optimiser, loss):
        optimiser.zero_grad()
        self.manual_backward(loss)
        optimiser.step()

    def generate(self, n, random=None):
        return self.g_ema(torch.randn(n, 2, generator=random).to(self.device))

    def training_step(self, real):
        g_adam, d_adam = self.optimizers()
        fake = self.g(torch.randn_like(real))
        if self.current_epoch >= N_EPOCHS // 2:  # + for a critic the data as they are
            self.learn(self.c_adam, d_loss(self.c, real, fake.detach()))  # +
            real = next(self.weighted).to(self.device)  # + for d weighted draws
        self.learn(d_adam, d_loss(self.d, real, fake.detach()))
        self.learn(g_adam, g_loss(self.d, fake))
        average(self.g_ema, self.g)

    def on_train_epoch_end(self):
        tell(self.generate(2_000), f"epoch {self.current_epoch}")
        self.record.add(self.current_epoch, self.d(points.to(self.device)))  # +
        if self.current_epoch == N_EPOCHS // 2 - 1:  # + the last 15 records tell what g misses
            self.c, self.c_adam = copy.deepcopy((self.d, self.trainer.optimizers[1]))  # +
            self.weighted = batches(WeightedSampler(diagnose([*self.record][-15:]).weights))  # +


gan = GAN()
trainer = Trainer(
    max_epochs=N_EPOCHS, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(gan, loader_of())
tell(points, "the data")
tell(gan.generate(5_000), "what g makes")
tell(RejectionSampler(gan.generate, gan.c, budget=2).sample(5_000), "what the critic keeps")  # +
