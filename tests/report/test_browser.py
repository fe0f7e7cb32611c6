"""The page in a real browser, opened from disk."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import agewise
from agewise import simulation
from agewise.report import write_page
from agewise.report._setting import Setting
from agewise.report._style import DARK, INKS, LIGHT
from agewise.tables._words import contrast_text, estimate_text
from tests.experiment.watch import rewrite
from tests.report.conftest import PATIENCE_MS, Evil
from tests.scenarios import tiny

WIDTHS = (1440, 390)
PACK = "max-pack"
DRAWN = """panel => { const ues = [...panel.querySelectorAll('.ue')]
    .sort((a, b) => a.dataset.ue - b.dataset.ue); return {
  round: Number(panel.dataset.round),
  ages: ues.map(e => Number(e.dataset.age)),
  on: ues.map(e => Number(e.dataset.on)),
  links: [...panel.querySelectorAll('.link')].map(e => Number(e.classList.contains('on'))),
  owner: [...panel.querySelectorAll('[data-subchannel]')].map(e => Number(e.dataset.owner)),
  power: [...panel.querySelectorAll('[data-subchannel]')].map(e => Number(e.dataset.power)),
}; }"""

PLACES = """panel => [...panel.querySelectorAll('.ue')]
    .sort((a, b) => a.dataset.ue - b.dataset.ue)
    .map(e => [e.cx.baseVal.value, e.cy.baseVal.value])"""


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

    def opened(file, width=1440, scheme="light", script=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme,
            reduced_motion="reduce", java_script_enabled=script,
        )  # fmt: skip
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: problems.append(said.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        if script:
            page.locator("html[data-replay=ready][data-whole]").wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []
    assert all(re.match(r"file:///|data:|blob:", url) for url in requests), requests
    assert sum(url.startswith("file:") for url in requests) == len(contexts)


def check_drawn(page, result, policy, name, t, seed=None):
    """What stands in the SVG is what the file of the run recorded for round ``t``."""
    seed = Setting(result, {}).seed if seed is None else seed
    drawn = page.locator(f'.panel[data-policy="{name}"]').evaluate(DRAWN)
    history = result.history(policy, seed)
    before = history.ages[t - 1] if t else np.zeros(12)
    scheduled = np.isin(np.arange(12), history.frame["scheduled"][t].to_list())
    assert drawn["round"] == t + 1
    np.testing.assert_array_equal(drawn["ages"], before)
    np.testing.assert_array_equal(drawn["on"], scheduled)
    np.testing.assert_array_equal(drawn["links"], scheduled)
    np.testing.assert_array_equal(drawn["owner"], history.owner[t])
    np.testing.assert_allclose(drawn["power"], 100 * history.frame["power"][t].to_numpy(), atol=0.6)


def stop_time(page):
    """Let time pass only as the test says from here on, however fast the machine is."""
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 3_600_000"))  # it cannot have passed by then


def shown_round(page):
    return page.locator("#round").inner_text()


def test_the_replay_opens_on_the_last_round_and_draws_what_was_recorded(visit, compared, files):
    page = visit(files["compared"])
    assert shown_round(page) == "round 8 of 8"
    names = {"age-based": "age-based", "max-pack": PACK}
    assert page.locator(".panel h3").all_inner_texts() == list(names.values())
    page.locator("#replay-policies").get_by_label("round-robin").check()
    names["round-robin"] = "round-robin"
    for t in (7, 0, 1, 4):
        page.get_by_role("slider").fill(str(t + 1))
        for policy, name in names.items():
            check_drawn(page, compared, policy, name, t)
    over = page.locator(".panel").first.evaluate(
        "e => [...e.querySelectorAll('.ue')].map(d => Number(d.dataset.on))"
    )
    assert over == sorted(over), "those that upload lie on top"
    page.locator("#replay-policies").get_by_label(PACK, exact=True).uncheck()
    assert page.locator(".panel h3").all_inner_texts() == ["age-based", "round-robin"]
    other = next(seed for seed in range(3) if seed != Setting(compared, {}).seed)
    page.locator("#seed").select_option(str(other))
    expect(page.locator(".panel h3")).to_have_text(["age-based", "round-robin"])
    page.get_by_role("slider").fill("3")
    check_drawn(page, compared, "round-robin", "round-robin", 2, other)


def test_buttons_and_keys_move_in_lockstep_with_the_focus_inside(visit, compared, files):
    page = visit(files["compared"])
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    assert shown_round(page) == "round 8 of 8", "the page's own keys are left alone"
    page.get_by_label("One round back").click()
    page.get_by_label("One round back").click()
    page.get_by_label("One round on").click()
    assert shown_round(page) == "round 7 of 8"
    page.locator("#replay").focus()
    for key, told in (
        ("Home", "round 1 of 8"), ("ArrowLeft", "round 1 of 8"), ("ArrowRight", "round 2 of 8"),
        ("End", "round 8 of 8"), ("ArrowRight", "round 8 of 8"),
    ):  # fmt: skip
        page.keyboard.press(key)
        assert shown_round(page) == told
    page.locator("#speed").select_option("16")
    page.locator("#replay").focus()
    stop_time(page)
    page.keyboard.press("Space")
    page.get_by_label("Pause", exact=True).wait_for()
    page.clock.run_for(1000)
    page.get_by_label("Play", exact=True).wait_for()
    assert shown_round(page) == "round 8 of 8"
    for policy, name in (
        ("age-based", "age-based"),
        ("max-pack", PACK),
    ):
        check_drawn(page, compared, policy, name, 7)


def test_one_cursor_stands_at_the_same_round_in_all_pictures(visit, compared, files):
    page = visit(files["compared"])
    picture = page.locator('[data-picture="accuracy"] .pic')
    picture.scroll_into_view_if_needed()
    box, frame = picture.bounding_box(), picture.evaluate("e => JSON.parse(e.dataset.chart)")
    axis, scale = frame["axes"][0], box["width"] / picture.evaluate("e => e.viewBox.baseVal.width")
    left, right = axis["x"]
    x = box["x"] + scale * (left + (right - left) * 4 / 7)  # round 5 of 8
    y = box["y"] + scale * sum(axis["y"]) / 2
    page.mouse.move(x, y)
    linked = page.locator(".cursor")
    rounds = linked.evaluate_all("all => all.map(each => Number(each.dataset.round))")
    assert rounds == [5] * page.locator('[data-chart*=\'"over": "rounds"\']').count()
    said = page.locator("#tip").inner_text().split("\n")
    mean = compared.accuracy("age-based").mean(axis=0)[4]
    assert said[0] == "round 5"
    shown = dict(line.rsplit(": ", 1) for line in said[1:])
    assert float(shown["age-based"]) == pytest.approx(mean, abs=0.002)
    page.mouse.click(x, y)
    assert shown_round(page) == "round 5 of 8"
    page.mouse.move(1, 1)
    expect(page.locator("#tip")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["compared", "swept"])
def test_axe_finds_nothing(visit, files, kind, scheme):
    found = Axe().run(visit(files[kind], scheme=scheme)).response["violations"]
    assert [(each["id"], [n["html"][:120] for n in each["nodes"]][:3]) for each in found] == []


def test_without_script_every_picture_is_there(visit, files):
    for kind in ("compared", "swept"):
        page = visit(files[kind], script=False)
        hidden = page.locator(".pic").evaluate_all(
            "all => all.filter(e => !e.closest('details') && !e.getBoundingClientRect().width)"
            ".map(e => e.dataset.name)"
        )
        assert hidden == []
    assert page.locator("button:visible").count() == 0, "no button that does nothing"


def test_printed_it_is_light_and_has_every_picture(visit, files):
    page = visit(files["swept"], scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.locator(".pic").evaluate_all(
        "all => all.filter(e => !e.closest('.still, details') && !e.getBoundingClientRect().width)"
        ".map(e => e.dataset.name)"
    )
    assert hidden == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("button:visible:not(thead button)").count() == 0
    heads = page.locator("section[aria-labelledby=numbers] thead th").all()
    assert all(head.get_by_role("button").is_visible() for head in heads), "heads are printed"
    assert not page.locator("#toml").is_visible(), "the whole scenario is not"


def test_a_click_on_a_head_sorts_the_table(visit, compared, files):
    page = visit(files["compared"])
    table = page.locator("section[aria-labelledby=numbers]").get_by_role("table").nth(1)
    values = []
    for _ in range(2):
        table.get_by_role("button", name="mean age", exact=True).click()
        cells = table.locator("tbody tr").all()
        values.append([float(row.get_by_role("cell").nth(2).inner_text()) for row in cells])
    assert values[0] == sorted(values[0], reverse=True)
    assert values[1] == values[0][::-1]
    with page.expect_download() as saved:
        page.get_by_text("Save the table as CSV").click()
    assert Path(saved.value.path()).read_text() == compared.table().to_csv()


def test_tables_are_read_as_tables(visit, compared, files):
    page = visit(files["compared"])
    accuracy = page.locator("section[aria-labelledby=numbers]").get_by_role("table").first
    first = compared.table().rows[0].at[8]
    assert accuracy.get_by_role("rowheader").all_inner_texts() == [
        "age-based", PACK, "max-pack:ties=lowest-index", "round-robin"
    ]  # fmt: skip
    cells = accuracy.get_by_role("row").nth(1).get_by_role("cell").all_inner_texts()
    assert cells[0] == f"{estimate_text(first)}\n{contrast_text(first.gain)}"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["compared", "swept"])
def test_everything_is_drawn_within_the_width(visit, files, tmp_path, kind, width):
    page = visit(files[kind], width)
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


def test_the_theme_changes_the_pictures(visit, files):
    page = visit(files["compared"])
    text = page.locator('[data-picture="accuracy"] .pic text').first
    line = page.locator("#s0-accuracy-series-0-0 path").first
    before = [
        text.evaluate("e => getComputedStyle(e).fill"),
        line.evaluate("e => getComputedStyle(e).stroke"),
    ]
    page.locator("#theme").click()
    after = [
        text.evaluate("e => getComputedStyle(e).fill"),
        line.evaluate("e => getComputedStyle(e).stroke"),
    ]
    assert before == [rgb(INKS["soft"][0]), rgb(LIGHT[0])]
    assert after == [rgb(INKS["soft"][1]), rgb(DARK[0])]
    font = "e => getComputedStyle(e).fontFamily"
    assert text.evaluate(font) == page.locator("body").evaluate(font)


def rgb(colour):
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_a_square_of_the_map_sets_the_page(visit, swept, files):
    page = visit(files["swept"])
    assert page.locator("[data-setting]:visible").count() == 4  # hero, learning, costs and why
    page.locator('[id$="-square-0-0"]').first.click()
    label = page.locator("#variation option:checked").inner_text()
    assert label == "rate=1, partition=iid"
    expect(page.locator(".setting:visible")).to_have_text([label] * 4)
    variation = {"threshold.rate": 1.0, "data.partition": "iid"}
    seed = Setting(swept, variation).seed
    owner = swept.history("max-pack", seed, variation).owner[7].tolist()
    page.wait_for_function(
        "owner => document.querySelector('.panel[data-policy=max-pack]') && JSON.stringify("
        "[...document.querySelectorAll('.panel[data-policy=max-pack] [data-subchannel]')]"
        ".map(e => Number(e.dataset.owner))) === JSON.stringify(owner)", arg=owner,
    )  # fmt: skip


def test_a_trace_is_replayed_with_better_channels_nearer_to_the_middle(visit, traced, tmp_path):
    page = visit(write_page(traced, tmp_path / "r.html"))
    expect(page.locator("#replay-note")).to_have_text(
        re.compile("mean gain of a phone in round 5,")
    )
    page.get_by_role("slider").fill("8")
    panel = page.locator('.panel[data-policy="max-pack"]')
    drawn = panel.evaluate(DRAWN)
    history = traced.history("max-pack", Setting(traced, {}).seed)
    np.testing.assert_array_equal(drawn["ages"], history.ages[6])
    np.testing.assert_array_equal(drawn["owner"], history.owner[7])
    assert page.locator(".panel .disc, .panel .scale").count() == 0
    far = np.hypot(*np.transpose(panel.evaluate(PLACES)))
    gain = history.eligible.gain.mean(axis=1)
    assert np.argsort(far).tolist() == np.argsort(-gain).tolist()
    assert far.max() < 104


def test_phones_of_unknown_channels_stand_in_rows(visit, traced, tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, "MOST_GAINS", 0)
    bare = agewise.compare(
        traced.scenario, ["age-based", "max-pack"], 1, tmp_path / "bare", engine="inline",
        quiet=True,
    )  # fmt: skip
    page = visit(write_page(bare, tmp_path / "r.html"))
    expect(page.locator("#replay-note")).to_have_text(re.compile("stand in rows"))
    panel = page.locator('.panel[data-policy="max-pack"]')
    assert panel.evaluate(DRAWN)["links"] == []
    assert page.locator(".panel .ap, .panel .disc").count() == 0
    x, y = np.transpose(panel.evaluate(PLACES))
    assert (np.unique(x).size, np.unique(y).size, y[0]) == (4, 3, y[3])
    assert abs(np.concatenate([x, y])).max() < 104


def test_moving_phones_are_drawn_where_they_were(visit, moving, tmp_path):
    page = visit(write_page(moving, tmp_path / "r.html"))
    expect(page.locator("#replay-note")).to_have_text(re.compile("The phones move"))
    history = moving.history("age-based", Setting(moving, {}).seed)
    reach_m = float(page.locator(".scale").first.inner_html().removesuffix(" m"))
    panel = page.locator('.panel[data-policy="age-based"]')
    for t in (7, 0, 3):
        page.get_by_role("slider").fill(str(t + 1))
        expected = history.positions_m[t] * [1, -1] * 104 / reach_m
        np.testing.assert_allclose(panel.evaluate(PLACES), expected, atol=0.1)
        ends = panel.evaluate(
            "p => [...p.querySelectorAll('line.link')]"
            ".map(e => [e.x2, e.y2].map(v => v.baseVal.value))"
        )
        np.testing.assert_allclose(ends, expected, atol=0.1)
        away = np.hypot(*history.positions_m[t, 2])
        assert f"phone 2, {away:.0f} m away" in panel.locator('[data-ue="2"] title').inner_html()
    page.emulate_media(reduced_motion="no-preference")
    page.locator("#speed").select_option("1")
    stop_time(page)
    page.get_by_label("Play", exact=True).click()
    page.clock.run_for(400)
    start, end = (history.positions_m[t] * [1, -1] * 104 / reach_m for t in (3, 4))
    between = np.array(panel.evaluate(PLACES))
    went = ((between - start) * (end - start)).sum() / ((end - start) ** 2).sum()
    assert went == pytest.approx(0.4, abs=0.03)  # to a frame
    np.testing.assert_allclose(between, start + went * (end - start), atol=0.2)
    assert shown_round(page) == "round 4 of 8"
    page.clock.run_for(700)
    assert shown_round(page) == "round 5 of 8"
    page.get_by_label("Pause", exact=True).click()
    np.testing.assert_allclose(panel.evaluate(PLACES), end, atol=0.1)


def test_everything_is_laid_out_in_the_end_and_at_once_without_script(visit, files):
    shown = "all => all.map(each => getComputedStyle(each).contentVisibility)"
    page = visit(files["compared"])
    assert set(page.locator("section").evaluate_all(shown)) == {"visible"}
    assert not page.locator(".still .pic").first.is_visible()
    page = visit(files["compared"], script=False)
    assert set(page.locator("section").evaluate_all(shown)) == {"visible"}
    assert page.locator(".still .pic").first.is_visible()


def test_settings_with_and_without_places_can_be_chosen_in_turn(visit, traced, tmp_path):
    channels = [traced.scenario.resolved()["channel"], tiny().resolved()["channel"]]
    mixed = agewise.sweep(
        tiny(), ["age-based", "max-pack"], {"channel": channels}, 1, tmp_path / "mixed",
        engine="inline", quiet=True,
    )  # fmt: skip
    page = visit(write_page(mixed))
    chart, chosen = page.locator('[data-picture="distance"]:visible'), page.locator("#variation")
    for _ in range(2):
        chosen.select_option(index=1)
        expect(page.locator("#replay-note")).to_have_text(re.compile("do not say where"))
        expect(page.locator(".panel .disc")).to_have_count(0)
        expect(chart).to_have_count(0)
        chosen.select_option(index=0)
        expect(page.locator(".panel .disc")).to_have_count(2)
        expect(chart).to_have_count(1)


def test_the_command_is_copied_and_nothing_else_has_such_a_button(visit, copied):
    rewrite(copied / "experiment.json", command="agewise compare tiny.toml")
    page = visit(write_page(copied))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stop_time(page)
    assert page.locator("button.copy").count() == 1
    page.get_by_label("Copy: Command").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == "agewise compare tiny.toml"


def test_the_first_screen_plays_all_rounds(visit, files):
    page = visit(files["compared"])
    hero = page.locator(".first .grid.hero .card")
    assert hero.count() == 3
    tops = hero.evaluate_all("all => all.map(each => each.getBoundingClientRect())")
    assert tops[2]["bottom"] < 900, "all of it is seen without scrolling"
    assert len({round(each["top"]) for each in tops}) == 1
    page.locator("#speed").select_option("16")
    stop_time(page)
    page.get_by_role("button", name="Watch 8 rounds").click()
    assert shown_round(page) == "round 1 of 8"
    page.clock.run_for(1000)
    assert shown_round(page) == "round 8 of 8"


def test_no_name_runs(visit, copied, tmp_path):
    described = json.loads((copied / "experiment.json").read_text())
    described["policies"].append({"name": Evil.name, "parameters": {}, "usual": []})
    described["command"] = "<img src=x onerror='window.hacked=1'></script><script>hacked=1</script>"
    rewrite(copied / "experiment.json", **described)
    page = visit(write_page(copied, tmp_path / "r.html"))
    assert page.evaluate("window.hacked") is None
    shown = page.locator("dd code").first.inner_text()  # split and quoted as a shell would
    assert shlex.split(shown) == shlex.split(described["command"])
    assert page.get_by_label("What is missing").inner_text().count(Evil.name) == 1


def test_the_replay_ends_as_the_paper_s_cell_did(visit, tmp_path):
    result = agewise.compare(
        agewise.Scenario.preset("paper"), ["age-based", "max-pack"], 1, tmp_path / "paper",
        engine="inline", quiet=True,
    )  # fmt: skip
    page = visit(write_page(result, tmp_path / "report.html"))
    assert page.get_by_text("round 100 of 100").is_visible()
    for policy in ("age-based", "max-pack"):
        drawn = page.locator(f'.panel[data-policy="{policy}"]').evaluate(DRAWN)
        assert drawn["owner"] == result.history(policy).owner[-1].tolist()
