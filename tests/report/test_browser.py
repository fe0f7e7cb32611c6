"""The page in a real browser, opened from disk."""

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import agewise
from agewise.report import write_page
from tests.experiment.watch import rewrite
from tests.report.conftest import Evil
from tests.scenarios import tiny

WIDTHS = (1280, 390)
PACK = "max-pack (ties=random)"
DRAWN = """panel => ({
  round: Number(panel.dataset.round),
  ages: [...panel.querySelectorAll('.ue')].map(e => Number(e.dataset.age)),
  on: [...panel.querySelectorAll('.ue')].map(e => Number(e.dataset.on)),
  links: [...panel.querySelectorAll('.link')].map(e => Number(e.classList.contains('on'))),
  owner: [...panel.querySelectorAll('[data-subchannel]')].map(e => Number(e.dataset.owner)),
  power: [...panel.querySelectorAll('[data-subchannel]')].map(e => Number(e.dataset.power)),
})"""


@pytest.fixture(scope="module")
def files(compared, swept, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    return {
        "compared": write_page(compared, folder / "compared.html"),
        "swept": write_page(swept, folder / "swept.html"),
    }


@pytest.fixture
def visit(browser):
    """Open a page; at the end there was no error and no request but for the page itself."""
    contexts, problems, requests = [], [], []

    def opened(file, width=1280, scheme="light", motion="reduce"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion=motion
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []
    assert all(re.match(r"file:///|data:|blob:", url) for url in requests), requests
    assert sum(url.startswith("file:") for url in requests) == len(contexts)


def draw_all(page):
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator(".main-svg").first.wait_for()


def check_drawn(page, result, policy, name, t):
    """What stands in the SVG is what the file of the cell recorded for round ``t``."""
    drawn = page.locator(f'.panel[data-policy="{name}"]').evaluate(DRAWN)
    history = result.history(policy, 0)
    before = history.ages[t - 1] if t else np.zeros(12)
    scheduled = np.isin(np.arange(12), history.frame["scheduled"][t].to_list())
    assert drawn["round"] == t + 1
    np.testing.assert_array_equal(drawn["ages"], before)
    np.testing.assert_array_equal(drawn["on"], scheduled)
    np.testing.assert_array_equal(drawn["links"], scheduled)
    np.testing.assert_array_equal(drawn["owner"], history.owner[t])
    np.testing.assert_allclose(drawn["power"], 255 * history.frame["power"][t].to_numpy(), atol=0.6)


def shown_round(page):
    return page.locator("#round").inner_text()


def test_the_replay_draws_what_was_recorded(visit, compared, files):
    page = visit(files["compared"])
    names = {"age-based": "age-based", "max-pack(ties=random)": PACK}
    assert page.locator(".panel h3").all_inner_texts() == list(names.values())
    page.get_by_label("round-robin").last.check()
    names["round-robin"] = "round-robin"
    for t in (0, 1, 4, 7):
        page.get_by_role("slider").fill(str(t + 1))
        for policy, name in names.items():
            check_drawn(page, compared, policy, name, t)
    page.get_by_label(PACK, exact=True).last.uncheck()
    assert page.locator(".panel h3").all_inner_texts() == ["age-based", "round-robin"]


def test_buttons_and_keys_move_in_lockstep(visit, compared, files):
    page = visit(files["compared"])
    page.get_by_label("One round on").click()
    page.get_by_label("One round on").click()
    page.get_by_label("One round back").click()
    assert shown_round(page) == "round 2 of 8"
    page.locator("#replay").focus()
    for key, told in (
        ("ArrowRight", "round 3 of 8"), ("ArrowLeft", "round 2 of 8"), ("End", "round 8 of 8"),
        ("ArrowRight", "round 8 of 8"), ("Home", "round 1 of 8"), ("ArrowLeft", "round 1 of 8"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert shown_round(page) == told
    page.locator("#speed").select_option("16")
    page.locator("#replay").focus()
    page.keyboard.press("Space")
    page.get_by_label("Pause", exact=True).wait_for()
    expect(page.locator("#round")).to_have_text("round 8 of 8")
    page.get_by_label("Play", exact=True).wait_for()
    for policy, name in (("age-based", "age-based"), ("max-pack(ties=random)", PACK)):
        check_drawn(page, compared, policy, name, 7)


def test_it_plays_by_itself_only_where_motion_is_welcome(visit, files):
    still = visit(files["compared"])
    still.locator(".controls").scroll_into_view_if_needed()
    still.wait_for_timeout(700)
    assert shown_round(still) == "round 1 of 8"
    moving = visit(files["compared"], motion="no-preference")
    moving.locator(".controls").scroll_into_view_if_needed()
    expect(moving.locator("#round")).not_to_have_text("round 1 of 8")
    moving.locator("#play").click()
    assert moving.locator("#play").inner_text().endswith("Play")


def test_tables_are_read_as_tables(visit, compared, files):
    page = visit(files["compared"])
    accuracy = page.get_by_role("table").first
    rows = compared.table().to_dicts()
    assert accuracy.get_by_role("rowheader").all_inner_texts() == [
        "age-based", PACK, "max-pack (ties=lowest-index)", "round-robin"
    ]  # fmt: skip
    cells = accuracy.get_by_role("row").nth(1).get_by_role("cell").all_inner_texts()
    assert cells[0].startswith(f"{100 * rows[0]['accuracy@8']:.1f} [")
    assert f"{100 * rows[0]['gain@8']:+.1f}, p" in cells[0]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["compared", "swept"])
def test_everything_is_drawn_within_the_width(visit, files, tmp_path, kind, width):
    page = visit(files[kind], width)
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    spans = page.evaluate("""[...document.querySelectorAll(
      '.card, .panel, .controls > *, h1, .answer, caption')].map(element => {
        const box = element.getBoundingClientRect(); return [box.left, box.right]; })""")
    assert min(left for left, _ in spans) >= 0
    assert max(right for _, right in spans) <= width + 0.5
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", back))) < 200) == (scheme == "dark")
        shot = tmp_path / f"{kind}-{width}-{scheme}.png"
        page.screenshot(path=shot, full_page=True)
        assert shot.stat().st_size > 20_000


def test_the_theme_and_the_legend_change_the_charts(visit, files):
    page = visit(files["compared"])
    chart = page.locator('[data-chart="age_mean"]')
    draw_all(page)
    font = "e => e._fullLayout.font.color"
    assert (chart.get_attribute("data-drawn"), chart.evaluate(font)) == ("4", "#1b1f24")
    page.locator("#theme").click()
    assert chart.evaluate(font) == "#e9ecf0"
    page.locator("#legend").get_by_label("round-robin").uncheck()
    assert chart.get_attribute("data-drawn") == "3"


def test_a_setting_of_a_sweep_changes_charts_and_replay(visit, swept, files):
    page = visit(files["swept"])
    draw_all(page)
    values = "e => JSON.stringify(e.data.map(trace => trace.y))"
    before = page.locator('[data-chart="accuracy"]').evaluate(values)
    page.locator("#variation").select_option(label="rate=1, partition=iid")
    assert page.locator('[data-chart="accuracy"]').evaluate(values) != before
    drawn = page.locator('.panel[data-policy="max-pack"]').evaluate(DRAWN)
    variation = {"threshold.rate": 1.0, "data.partition": "iid"}
    assert drawn["owner"] == swept.history("max-pack", 0, variation).owner[0].tolist()


def test_a_trace_is_replayed_without_a_map_of_places(visit, traced, tmp_path):
    page = visit(write_page(traced, tmp_path / "r.html"))
    chart = page.locator('[data-chart="distance"]')
    chart.scroll_into_view_if_needed()
    expect(chart).to_have_text(re.compile("do not say where the UEs are"))
    expect(page.locator("#replay-note")).to_have_text(re.compile("stand in rows"))
    page.get_by_role("slider").fill("8")
    drawn = page.locator('.panel[data-policy="max-pack"]').evaluate(DRAWN)
    history = traced.history("max-pack", 0)
    np.testing.assert_array_equal(drawn["ages"], history.ages[6])
    np.testing.assert_array_equal(drawn["owner"], history.owner[7])
    assert drawn["links"] == []
    assert page.locator(".panel .ap, .panel .disc").count() == 0
    boxes = page.evaluate(
        "[...document.querySelectorAll('.panel .ue')].map(e => e.cx.baseVal.value)"
    )
    assert len(boxes) == 24
    assert -104 < min(boxes) < max(boxes) < 104


def test_settings_with_and_without_places_can_be_chosen_in_turn(visit, traced, tmp_path):
    channels = [traced.scenario.resolved()["channel"], tiny().resolved()["channel"]]
    mixed = agewise.sweep(
        tiny(), ["age-based", "max-pack"], {"channel": channels}, 1, tmp_path / "mixed",
        engine="inline", quiet=True,
    )  # fmt: skip
    page = visit(write_page(mixed))
    chart, chosen = page.locator('[data-chart="distance"]'), page.locator("#variation")
    draw_all(page)
    for _ in range(2):
        chosen.select_option(index=1)
        expect(chart).to_have_text(re.compile("do not say where the UEs are"))
        assert page.locator(".panel .ap").count() == 0
        chosen.select_option(index=0)
        expect(chart.locator(".main-svg").first).to_be_visible()
        expect(chart).not_to_have_text(re.compile("do not say where"))
        assert page.locator(".panel .ap").count() == 2


def test_copy_buttons_copy(visit, compared, files):
    page = visit(files["compared"])
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_label("Copy: scenario").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == compared.scenario.to_toml()


def test_no_name_runs(visit, copied, tmp_path):
    described = json.loads((copied / "experiment.json").read_text())
    described["policies"].append({"name": Evil.name, "parameters": {}})
    described["command"] = "<img src=x onerror='window.hacked=1'></script><script>hacked=1</script>"
    rewrite(copied / "experiment.json", **described)
    page = visit(write_page(copied, tmp_path / "r.html"))
    draw_all(page)
    assert page.evaluate("window.hacked") is None
    shown = page.locator("dd code").first.inner_text()  # split and quoted as a shell would
    assert shlex.split(shown) == shlex.split(described["command"])
    assert page.get_by_label("What is missing").inner_text().count(Evil.name) == 1


def test_the_picture_of_the_readme(visit, tmp_path):
    """The replay's last round in the paper scenario: `make picture` keeps it."""
    result = agewise.compare(
        agewise.Scenario.preset("paper"), ["age-based", "max-pack"], 1, tmp_path / "paper",
        engine="inline", quiet=True,
    )  # fmt: skip
    page = visit(write_page(result, tmp_path / "report.html"))
    page.locator("#replay").focus()
    page.keyboard.press("End")
    assert page.get_by_text("round 100 of 100").is_visible()
    for policy in ("age-based", "max-pack"):
        drawn = page.locator(f'.panel[data-policy="{policy}"]').evaluate(DRAWN)
        assert drawn["owner"] == result.history(policy).owner[-1].tolist()
    picture = Path(os.environ.get("AGEWISE_PICTURE", tmp_path / "report.png"))
    page.locator(".panels").screenshot(path=picture)
    assert picture.stat().st_size > 20_000
