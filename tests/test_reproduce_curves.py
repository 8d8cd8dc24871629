from diagan.reproduce.curves import _x, _y, recall_curves
from diagan.reproduce.pictures import COLOURS

LEVELS = ("Gaussian, sigma 3", "Gaussian, sigma 2.5", "Gaussian, sigma 2")


def cells(group, means, deviation=None):
    return [
        {"row": f"{level}, {group}", "n": int(mean is not None), "mean": mean,
         "deviation": deviation}
        for level, mean in zip(LEVELS, means)
    ]  # fmt: skip


def colour_at(picture, level, value):
    return picture.getpixel((round(_x(level)), round(_y(value))))


def test_points_lines_and_deviations_lie_where_the_numbers_are():
    picture = recall_curves(cells("minor", (0.8, 0.6, 0.2), deviation=0.1))
    drawn = [(0, 0.8), (1, 0.6), (2, 0.2), (0, 0.89), (0, 0.71), (0.5, 0.7), (1.5, 0.4)]
    assert all(colour_at(picture, *place) == COLOURS[0] for place in drawn)
    others = [(0, 0.6), (1, 0.8), (2, 0.4), (0, 0.93), (0.5, 0.6)]
    assert all(colour_at(picture, *place) != COLOURS[0] for place in others)


def test_the_major_group_is_paler_and_a_deviation_stays_within_the_range():
    picture = recall_curves(cells("major", (0.98, 0.97, 0.99), deviation=0.3))
    r, g, b = colour_at(picture, 0, 0.98)
    assert (r, g, b) != COLOURS[0] and r > COLOURS[0][0] and b > COLOURS[0][2]
    assert colour_at(picture, 0, 1.02) == (255, 255, 255)


def test_a_level_that_is_missing_leaves_the_others_and_none_makes_no_picture():
    picture = recall_curves(cells("minor", (None, None, 0.3)))
    assert colour_at(picture, 2, 0.3) == COLOURS[0] != colour_at(picture, 1, 0.3)
    assert recall_curves(cells("minor", (None, None, None))) is None
