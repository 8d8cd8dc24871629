"""The paper's figures as data: panels in rows and columns, each a picture of a run.

A panel is a cell whose metric is one of PICTURES; what draws it is in `reproduce/pictures.py`.
Figure 1e is numbers (`tables.py`); Figure 2 has a script of its own.
"""

from diagan.experiments.cells import Part, Table, grid
from diagan.experiments.rows import DIA, DIGITS, EVAL, GOLD, INCLUSIVE, PACGAN, TOPK, VANILLA
from diagan.experiments.tables import KS

PICTURES = {
    "grid": "generated images, the same latents for every arm without rejection",
    "highest": "the training images with the highest score, for one k",
    "lowest": "the training images with the lowest score, for one k",
    "intensity": "how often each intensity occurs in 100 images of a kind",
    "ldr": "LDR of 50 training samples over the records",
    "ranks": "their ranks among all samples",
}
SCRIPTS = {
    "figure2": ("25 Gaussians: LDRM of the modes over time, and what G makes of them",
                "python results/gaussians25.py", "gaussians25.json"),
}  # fmt: skip

PHOTOS = {"CIFAR-10": "cifar10_sngan", "CelebA": "celeba_sngan"}
SAME_LATENTS = [Part("vanilla", arm="plain", metric="grid"),
                Part("Dia-GAN", arm="weighted", metric="grid")]  # fmt: skip


def by_score(name: str, dataset: str) -> Table:
    """Figures 3 and A2: lowest and highest scored, generated, and their intensities."""
    columns = [
        Part(f"{which} scored", arm="phase1", metric=which) for which in ("lowest", "highest")
    ]
    columns += [Part("generated", arm="phase1", metric="grid"),
                Part("intensities", arm="phase1", metric="intensity")]  # fmt: skip
    title = f"{dataset}: lowest and highest scored training images, generated images"
    return Table(name, title, grid([Part(dataset, PHOTOS[dataset])], columns), trials=1)


def by_k(name: str, dataset: str, which: str) -> Table:
    """Figures A3 to A6: the ends of the ranking as k goes from LDRM alone to LDRV alone."""
    ks = {"LDRM (k = 0)": "0", **{f"k = {k:g}": f"{k:g}" for k in KS}, "LDRV": "inf"}
    columns = [Part(title, arm="phase1", metric=which, group=f"k={k}") for title, k in ks.items()]
    title = f"{dataset}: training images with the {which} score, by k"
    return Table(name, title, grid([Part(dataset, PHOTOS[dataset])], columns), trials=1)


def grids(name: str, title: str, dataset: str) -> Table:
    rows = [Part(dataset, PHOTOS[dataset])]
    return Table(name, title, grid(rows, SAME_LATENTS), trials=1)


INSTABILITY = [Part("LDR", arm="phase1", metric="ldr"), Part("rank", arm="phase1", metric="ranks")]
A1_WINDOW = (("record.window", 100),)  # up to step 40,000

FIGURES: dict[str, Table] = {
    figure.name: figure
    for figure in (
        Table(
            "figure1",
            "Generated digits, where the minor group is 10 %",
            grid([VANILLA], [Part(p.name, p.experiment, metric="grid") for p in DIGITS[2::3]]),
            trials=1,
        ),
        by_score("figure3", "CIFAR-10"),
        grids("figure4", "CelebA: the same latents, plain and Dia-GAN", "CelebA"),
        Table(
            "figureA1",
            "LDR of 50 training samples over the records, and their ranks",
            grid(
                [
                    Part("CIFAR-10", "cifar10_sngan", changes=A1_WINDOW),
                    *(Part(p.name, p.experiment) for p in DIGITS),
                    Part(f"{DIGITS[0].name}, eval mode", DIGITS[0].experiment, changes=(EVAL,)),
                ],
                INSTABILITY,
            ),
            trials=1,
            quick=(DIGITS[0].name,),
            notes=("The paper has CIFAR-10, 100 records. The digits are ours, with the records "
                   "that their diagnosis reads.",),
        ),
        by_score("figureA2", "CelebA"),
        by_k("figureA3", "CIFAR-10", "highest"),
        by_k("figureA4", "CIFAR-10", "lowest"),
        by_k("figureA5", "CelebA", "highest"),
        by_k("figureA6", "CelebA", "lowest"),
        grids("figureA7", "CIFAR-10: generated images, plain and weighted", "CIFAR-10"),
        grids("figureA8", "CelebA: generated images, plain and weighted", "CelebA"),
        grids("figureA9", "CelebA: the same latents, plain and weighted", "CelebA"),
        Table(
            "figureA10",
            "MNIST-FMNIST: generated images of six methods at three rates",
            grid(
                [VANILLA, GOLD, TOPK, PACGAN, INCLUSIVE, DIA],
                [Part(p.name, p.experiment, metric="grid") for p in DIGITS[3:]],
            ),
            trials=1,
            quick=(DIGITS[3].name,),
        ),
    )
}  # fmt: skip
