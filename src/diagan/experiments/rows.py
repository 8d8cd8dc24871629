"""What the rows and columns of several tables are: methods, datasets, and our own row."""

from diagan.experiments.cells import Also, Part

VANILLA = Part("Vanilla", arm="plain")
DRS = Part("DRS", arm="plain+drs")
GOLD, GOLD_DRS = (Part(f"GOLD{more}", suffix="_gold", arm=arm) for more, arm in
                  (("", "plain"), (" + DRS", "plain+drs")))  # fmt: skip
TOPK, TOPK_DRS = (Part(f"Top-k{more}", suffix="_topk", arm=arm) for more, arm in
                  (("", "phase1"), (" + DRS", "phase1+drs")))  # fmt: skip
PACGAN = Part("PacGAN", suffix="_pacgan", arm="phase1")
INCLUSIVE = Part("Inclusive GAN", suffix="_inclusive", arm="phase1")
DIA = Part("Dia-GAN", arm="weighted+drs")
WEIGHTED = Part("Dia-GAN without rejection", arm="weighted")  # ours; the paper always rejects

DIGITS = [
    Part(f"{title} {percent} %", f"{name}_{percent}")
    for title, name in (("Colored MNIST", "colored_mnist"), ("MNIST-FMNIST", "mnist_fmnist"))
    for percent in (99, 95, 90)
]
EVAL = ("record.mode", "eval")  # the published code records Colored MNIST in train mode
COLORED_99 = "Colored MNIST 99 %"
CIFAR, CELEBA = Part("CIFAR-10", "cifar10_sngan"), Part("CelebA", "celeba_sngan")
OUR_ROW = Part(COLORED_99, "colored_mnist_99", metric="reconstruction_error", group="minor")
ON_DIGITS = (Also("share of the minor group", "group_share"),
             Also("Fréchet distance, classifier features", "fid"))  # fmt: skip
