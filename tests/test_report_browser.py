"""The page in a real Chromium: what moves, what is said aloud, and that nothing leaves it.

DIAGAN_SCREENSHOTS=DIR keeps pictures of it.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from report_runs import NASTY, image_run, point_run

from diagan.report import write_comparison, write_report
from diagan.rundir import RunDir

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next((p for name in ("chromium", "chromium-browser", "google-chrome")
                 if (p := shutil.which(name))), None)  # fmt: skip
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt install it"),
]
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDir:
    run = image_run(tmp_path_factory.mktemp("browser") / "run", n_rare=20)
    write_report(run.path)
    return run


@pytest.fixture
def visit(browser) -> Iterator:
    """Opens a page; at the end there was no error, and no request but for the file itself."""
    contexts, wrong, asked = [], [], []

    def visit(file: Path, **options):
        usual = {"viewport": {"width": 1240, "height": 900}, "reduced_motion": "reduce"}
        context = browser.new_context(**usual | options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.goto(file.resolve().as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []
    assert all(url.startswith(("file://", "data:")) for url in asked)
    assert sum(url.startswith("file://") for url in asked) == len(contexts)


def keep_picture(page, name: str) -> None:
    if folder := os.environ.get("DIAGAN_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


def place_of(page, index: int) -> tuple[float, float]:
    """Where a sample lies on the canvas, by the page's own scales."""
    found = page.evaluate(
        "(index) => { const i = points.index.indexOf(index);"
        " return [xAt(points.x[i]), yAt(points.y[i])]; }",
        index,
    )
    return found[0], found[1]


def highest(page) -> list[str]:
    """The titles of the highest scored pictures."""
    return page.locator("#highest .thumb").evaluate_all("all => all.map((one) => one.title)")


def test_hover_shows_a_sample_and_a_click_keeps_it(visit, run: RunDir) -> None:
    page = visit(run.report)
    canvas = page.locator("#map")
    canvas.scroll_into_view_if_needed()
    x, y = place_of(page, 190)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    tip = page.locator("#tip")
    assert tip.is_visible()
    said = tip.inner_text()
    assert "green" in said
    assert "score" in said
    assert tip.locator(".thumb.real").count() == 1
    page.mouse.down()
    page.mouse.up()
    kept = page.locator("#pin")
    assert said.split()[2] in kept.inner_text()  # index N
    assert "Its LDR over time" in kept.inner_text()
    assert kept.locator("svg polyline").count() == 2
    assert "Nearest made by plain GAN" in kept.inner_text()
    assert kept.locator(".near .thumb").count() == 6 * 4
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_a_click_on_a_picture_anywhere_keeps_that_sample(visit, run: RunDir) -> None:
    page = visit(run.report)
    picture = page.locator("#lowest .thumb").nth(3)
    title = picture.get_attribute("title")
    picture.click()
    assert title.split(",")[1].strip() in page.locator("#pin").inner_text()  # index N
    assert "kept" in page.locator("#lowest .thumb").nth(3).get_attribute("class")


def test_the_slider_ranks_again(visit, tmp_path: Path) -> None:
    """LDRV rises where LDRM falls: from one end of the slider to the other, the ends change."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    run = image_run(tmp_path / "run", n=100, n_rare=20)
    table = pq.read_table(run.samples).to_pydict()
    table["ldrm"] = np.linspace(1, 0, 100)
    table["ldrv"] = np.linspace(0, 1, 100) ** 2
    table["score"] = table["ldrm"] + np.sqrt(table["ldrv"]) + np.linspace(0, 1e-6, 100)
    pq.write_table(pa.table(table), run.samples)
    write_report(run.path)
    page = visit(run.report)
    slider = page.locator("#k")
    slider.focus()
    page.keyboard.press("Home")
    assert page.locator("#k-words").inner_text() == "0 (LDRM alone)"
    assert "index 0," in highest(page)[0]
    before = page.locator("#shades polyline").first.get_attribute("points")
    page.keyboard.press("End")
    assert page.locator("#k-words").inner_text() == "∞ (√LDRV alone)"
    assert "index 99," in highest(page)[0]
    assert "20 green" in page.locator("#highest-words").inner_text()
    assert page.locator("#shades polyline").first.get_attribute("points") != before
    assert page.locator("#map-k").inner_text() == "∞"


def test_filter_by_group(visit, run: RunDir) -> None:
    page = visit(run.report)
    page.locator("#filter").select_option(label="red")
    assert highest(page)
    assert all(title.startswith("red") for title in highest(page))
    canvas = page.locator("#map")
    canvas.scroll_into_view_if_needed()
    x, y = place_of(page, 190)  # a green one, which is not there now
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert page.locator("#tip").is_hidden()
    page.locator("tr[data-group=green]").click()
    assert all(title.startswith("green") for title in highest(page))
    assert page.locator("#filter").evaluate("one => one.selectedOptions[0].text") == "green"


def test_the_table_sorts_by_any_column(visit, run: RunDir) -> None:
    page = visit(run.report)
    names = page.locator("#group-table tbody td.name")
    head = page.locator("#group-table thead tr:last-child th")
    head.nth(1).get_by_role("button").click()
    assert names.all_inner_texts() == ["red", "green"]  # the many first
    assert head.nth(1).get_attribute("aria-sort") == "descending"
    head.nth(1).get_by_role("button").press("Enter")
    assert names.all_inner_texts() == ["green", "red"]
    head.nth(0).get_by_role("button").click()
    assert names.all_inner_texts() == ["green", "red"]  # by name
    assert head.nth(1).get_attribute("aria-sort") is None


def test_the_map_zooms_and_goes_back(visit, run: RunDir) -> None:
    page = visit(run.report)
    canvas = page.locator("#map")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 250, steps=3)
    page.mouse.up()
    view = page.evaluate("state.view")
    whole = page.evaluate("whole")
    assert whole[0] < view[0] < view[1] < whole[1]
    page.locator("#unzoom").click()
    assert page.evaluate("state.view") is None


def test_the_keyboard_alone_reaches_everything(visit, run: RunDir) -> None:
    page = visit(run.report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    page.locator("#map").focus()
    first = page.locator("#pin").inner_text()
    page.keyboard.press("ArrowLeft")
    second = page.locator("#pin").inner_text()
    assert second != first
    assert "2 of 200" in second
    page.keyboard.press("ArrowRight")
    assert "1 of 200" in page.locator("#pin").inner_text()


def test_a_screen_reader_has_words_for_every_picture(visit, run: RunDir) -> None:
    page = visit(run.report)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("img, canvas, [role=img], button, select, input")]
        .filter((one) => !(one.getAttribute("alt") || one.getAttribute("aria-label")
          || one.textContent.trim() || (one.labels && one.labels.length)))
        .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    assert page.locator("h1").count() == 1
    assert page.locator("#pin").get_attribute("aria-live") == "polite"


LUMINANCE = """() => {
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((c) => {
      const share = c / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = (one) => {
    for (let box = one; box; box = box.parentElement) {
      const colour = getComputedStyle(box).backgroundColor;
      if (!/, 0\\)$/.test(colour) && colour !== "transparent") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const weak = [];
  for (const one of document.querySelectorAll("p, td, th, h1, h2, h3, h4, li, a, span, b, code")) {
    if (!one.childNodes.length || !one.offsetParent || one.closest("svg")) continue;
    if (![...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) weak.push(`${one.tagName} ${one.textContent.slice(0, 40)} ${contrast}`);
  }
  return weak;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_the_paper(visit, run: RunDir, scheme: str) -> None:
    page = visit(run.report, color_scheme=scheme)
    assert page.evaluate(LUMINANCE) == []
    keep_picture(page, scheme)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("make", [image_run, point_run])
def test_nothing_hangs_over_the_edge_of_a_phone(visit, tmp_path: Path, make) -> None:
    run = make(tmp_path / "run")
    write_report(run.path)
    page = visit(run.report, viewport=PHONE, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    canvas = page.locator("#map")
    canvas.scroll_into_view_if_needed()
    x, y = place_of(page, 150)
    canvas.tap(position={"x": x, "y": y})
    assert "index" in page.locator("#pin").inner_text()
    keep_picture(page, f"phone-{make.__name__}")


def test_names_from_data_are_shown_as_text(visit, tmp_path: Path) -> None:
    run = image_run(tmp_path / "run", names=NASTY, n_rare=20)
    write_report(run.path)
    page = visit(run.report)  # a dialog would be an error
    for name in NASTY:
        assert name in page.locator("#group-table").inner_text()
        page.locator("#filter").select_option(label=name)
        assert all(title.startswith(name) for title in highest(page))
        page.locator("#highest .thumb").first.click()
        assert name in page.locator("#pin").inner_text()
    assert page.locator("img[onerror], img[src=x]").count() == 0
    assert page.locator("script").count() == 2


def test_points_without_pictures_work_too(visit, tmp_path: Path) -> None:
    run = point_run(tmp_path / "run")
    write_report(run.path)
    page = visit(run.report)
    rows = page.locator("#highest-rows tr")
    assert rows.first.locator("td").first.inner_text() == "249"
    rows.nth(1).click()
    assert "index 248" in page.locator("#pin").inner_text()
    page.locator("#k").press("Home")
    assert rows.first.locator("td").first.inner_text() == "249"


def test_several_runs_fit_a_screen_and_a_phone(visit, tmp_path: Path) -> None:
    runs = [image_run(tmp_path / name, names=NASTY) for name in ("a", "b", "c")]
    out = write_comparison([run.path for run in runs], tmp_path / "all.html")
    page = visit(out)
    lefts = {round(card.bounding_box()["x"]) for card in page.locator(".runs > .card").all()}
    assert len(lefts) == 3
    keep_picture(page, "comparison")
    phone = visit(out, viewport=PHONE)
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
