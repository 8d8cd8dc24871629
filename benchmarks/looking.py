"""What the metrics of the digit sets cost: a look by the classifier, a step of the autoencoder.

python -m benchmarks.looking
"""

from functools import partial

import torch
from torch.nn.functional import conv2d, mse_loss

from benchmarks.common import alternate, random_images
from diagan.data import as_input
from diagan.features.classifier import ClassifierFeatures, bundled, load_classifier
from diagan.networks.autoencoder import Autoencoder

N_LOOKED, N_STEP, ROUNDS = 256, 128, 5


def plain_look(net, images, batch=64):
    """The same network by PyTorch's own convolution."""
    with torch.no_grad():
        for few in images.split(batch):
            x = as_input(few)
            for layer, norm in zip(net.convolutions, net.norms):
                x = conv2d(x, layer.weight, padding=3)
                x = norm(x.flatten(2)).relu_().view_as(x)
            net.logits(x.mean(dim=(2, 3)))


def step(net, adam, x):
    adam.zero_grad()
    mse_loss(net(x), x).backward()
    adam.step()


def main() -> None:
    images = torch.from_numpy(random_images(N_LOOKED).values)
    path = bundled("colored_mnist")
    net, _ = load_classifier(path)
    actions = {"look": partial(ClassifierFeatures("classifier", path), images),
               "plain look": partial(plain_look, net, images)}  # fmt: skip
    for name, form in (("step", torch.channels_last), ("plain step", torch.contiguous_format)):
        autoencoder = Autoencoder((3, 32, 32)).to(memory_format=form)
        adam = torch.optim.Adam(autoencoder.parameters(), fused=True)
        actions[name] = partial(step, autoencoder, adam, as_input(images[:N_STEP]))
    found = alternate(actions, ROUNDS)
    for name, n in (("look", N_LOOKED), ("step", N_STEP)):
        mine, plain = (1e3 * found[key] / n for key in (name, f"plain {name}"))
        print(
            f"{name}: {mine:.2f} ms an image, plain {plain:.2f}: {plain / mine:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
