"""The page without a browser: what it says, what it escapes, and what it does with bad folders."""

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

import agewise
from agewise.policies import AgeBased, make_policy
from agewise.report import _idea, _replay, _setting, _style, write_page
from agewise.report._setting import Setting
from agewise.report._style import DARK, LIGHT
from agewise.report.page import make_page
from agewise.tables._words import contrast_text, estimate_text, points_text
from agewise.tables.results import _layout
from tests.experiment.watch import rewrite
from tests.report.conftest import Evil
from tests.scenarios import tiny

PACK = "max-pack"
NINE = [
    "age-based", "max-pack", "round-robin", "random", "best-channel", "proportional-fair",
    "max-weight", "whittle", "oort",
]  # fmt: skip


@pytest.fixture(scope="module")
def page(compared, tmp_path_factory):
    path = write_page(compared, tmp_path_factory.mktemp("page") / "report.html")
    return path.read_text(encoding="utf-8")


def embedded(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def plain(markup):
    return unescape(re.sub("<[^>]*>", "", markup))


def headline(page):
    return plain(re.search(r"<h1[^>]*>(.*?)</h1>", page)[1])


def test_the_verdict_comes_first_with_its_numbers(page, compared):
    order = ["<h1", 'class="answer"', "data-chart=", 'id="replay"', "<table", 'id="toml"']
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    gain = compared.table().rows[0].gains[8]
    assert headline(page) == (
        f"With 3 seeds no verdict: {points_text(gain.mean)} points after 8 rounds"
    )
    for row in compared.table().rows:
        assert estimate_text(row.at[8]) in page
        if row.at[8].gain is not None:
            assert contrast_text(row.at[8].gain) in plain(page)
    assert "Missing:" not in page
    assert "could not be made" not in page


def test_the_cause_is_said_as_measured(page, compared):
    """Who takes how many uploads, and how many phones nobody hears: the first screen says both."""
    (cause,) = re.findall(r'<p class="answer">(.*?)</p>', page)
    runs = {name: compared.histories(name).values() for name in ("age-based", "max-pack")}
    uploads = {
        name: np.mean([len(ues) for run in each for ues in run.received])
        for name, each in runs.items()
    }
    never = {
        name: 12 - round(np.mean([np.count_nonzero(run.participation) for run in each]))
        for name, each in runs.items()
    }
    more, fewer = sorted(uploads, key=lambda name: -uploads[name])
    said = {name: f"never hears {x} of 12 phones" if x else "hears all 12 phones"
            for name, x in never.items()}  # fmt: skip
    turn = "but" if never[more] > never[fewer] else "and"
    assert plain(cause) == (
        f"{more} takes {uploads[more]:.0f} uploads a round against {uploads[fewer]:.0f}, {turn} "
        f"{said[more]}; {fewer} {said[fewer]}."
    )


def test_the_nearest_preset_and_what_is_not_as_there(page, compared):
    assert "The scenario is the preset paper but for" in page
    assert "<span>paper, changed · 12 phones, " in page, "and not the folder's name"
    part = page[page.index("is the preset paper but for") :]
    rows = [plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", part.split("</table>")[0])]
    changed = dict(zip(rows[::3], zip(rows[1::3], rows[2::3], strict=True), strict=True))
    assert changed["cell.ues"] == ("100", "12")
    assert changed["run.rounds"] == ("100", "8")
    assert not {name for name, (there, here) in changed.items() if there == here}
    saved = re.search(r'href="data:application/toml;base64,([^"]*)"', page)[1]
    assert base64.b64decode(saved).decode() == compared.scenario.to_toml()


def test_it_can_be_made_again(page, compared):
    toml = unescape(re.search(r'id="toml">(.*?)</code>', page, re.DOTALL)[1])
    assert toml == compared.scenario.to_toml()
    for policy in compared.policies:
        assert str(policy) in unescape(page)
    assert f"agewise {agewise.__version__}" in page


def test_only_its_own_scripts_may_run_and_nothing_is_fetched(page):
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 4
    for script in scripts:
        mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{mark}'" in policy
    head = page.split("<script")[0]
    assert not re.search(r'<(script|img|link|iframe)[^>]+(src|href)="', head)
    assert not re.search(r'(href|src)="(?!data:|#)', head)


def unpacked(text):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def pictures(page):
    """The pictures by name, with the values that their lines stand for."""
    found = {}
    for text in re.findall(r'<svg class="pic".*?</svg>', page, re.DOTALL):
        name = re.search(r'data-name="([^"]*)"', text)[1]
        chart = json.loads(unescape(re.search(r'data-chart="([^"]*)"', text)[1]))
        lines = {}
        for axis in chart["axes"]:
            (left, right), (bottom, top) = axis["x"], axis["y"]
            x_low, x_high, y_low, y_high = axis["from"]
            for series, label in axis["series"].items():
                drawn = re.search(rf'<g id="{name}-{series}"><path d="([^"]*)"', text)
                if drawn:
                    points = np.array(re.findall(r"-?[\d.]+", drawn[1]), float).reshape(-1, 2)
                    x = x_low + (points[:, 0] - left) / (right - left) * (x_high - x_low)
                    y = y_low + (points[:, 1] - bottom) / (top - bottom) * (y_high - y_low)
                    lines[label] = (x, y, abs(y_high - y_low) / abs(top - bottom))
        found[name] = (text, lines)
    return found


def test_all_sections_are_there_in_order(page):
    heads = re.findall(r"<h([12]) [^>]*>(.*?)</h", page)
    assert [text for _, text in heads[1:]] == [
        "Who is heard, and what it gains", "The idea", "Watch it",
        "Does it learn better?", "Per round, channel use or bit?", "Why?", "All numbers",
        "How to get the same",
    ]  # fmt: skip
    names = list(pictures(page))
    assert names == [
        "s0-heat-0", "s0-heat-1", "s0-forest", "s0-heat-2", "s0-heat-3", "idea-water",
        "idea-chosen", "s0-cell-0", "s0-cell-1", "s0-gain", "s0-accuracy", "s0-costs",
        "s0-distance", "s0-distribution", "s0-diversity", "s0-trade-off",
    ]  # fmt: skip


def test_pictures_show_what_the_runs_did(page, compared):
    drawn = pictures(page)
    x, y, unit = drawn["s0-accuracy"][1]["age-based"]
    np.testing.assert_allclose(x, np.arange(1, 9), atol=0.03)
    mean = compared.accuracy("age-based").mean(axis=0)
    np.testing.assert_allclose(y, mean, atol=0.06 * unit)  # drawn to a tenth of a point
    gain = compared.accuracy("age-based") - compared.accuracy(PACK)
    _, y, unit = drawn["s0-gain"][1]["mean"]
    np.testing.assert_allclose(y, 100 * gain.mean(axis=0), atol=0.06 * unit)
    share = [compared.history("round-robin", s).participation / 8 for s in range(3)]
    positions = [compared.history("round-robin", s).info.positions_m for s in range(3)]
    far = np.concatenate([np.hypot(*each.T) for each in positions]) >= 90
    served = Setting(compared, {}).served("round-robin")
    assert served[-1] == pytest.approx(np.concatenate(share)[far].mean())


def test_findings_are_the_numbers_of_the_runs(page, compared):
    titles = dict(
        re.findall(r'data-picture="([^"]*)"><figcaption><h3>(.*?)</h3>', page)
    )  # fmt: skip
    titles = {name: unescape(re.sub("<[^>]*>", "", title)) for name, title in titles.items()}
    setting = Setting(compared, {})
    last = {name: 100 * compared.accuracy(key)[:, -1].mean() for name, key in
            (("age-based", "age-based"), ("max-pack", PACK))}  # fmt: skip
    said = ", ".join(f"{name} {value:.1f}%" for name, value in last.items())
    assert titles["accuracy"] == f"After 8 rounds: {said}"
    assert titles["forest"] == "All policies against max-pack", "with three seeds none is better"
    old = int(np.sum(setting.history("age-based").ages[-1] >= setting.oldest))
    assert titles["heat-0"].startswith(f"age-based: {old or 'no'} phone")


def test_the_seed_to_look_at_has_the_median_gain(compared):
    setting = Setting(compared, {})
    gains = {
        seed: compared.history("age-based", seed).accuracy[-1]
        - compared.history(PACK, seed).accuracy[-1]
        for seed in range(3)
    }
    assert gains[setting.seed] == sorted(gains.values())[1]


def test_heat_maps_are_small_and_take_the_colours_of_the_page(page):
    text, _ = pictures(page)["s0-heat-0"]
    assert len(text) < 8_000
    assert 'class="fresh"' in text
    assert 'class="stale"' in text
    assert text.count("<mask") == 1
    for each, _ in pictures(page).values():
        assert not re.search(r"(fill|stroke): #(?!9f9a78|000000)", each), "a colour of its own"
        assert "font-family" not in each


def test_names_in_pictures_are_unique(page):
    names = re.findall(r' id="([^"]*)"', page)
    assert len(names) == len(set(names))
    for used in re.findall(r'(?:url\(#|href="#)([^)"]+)', page):
        assert used in names


def test_a_picture_that_cannot_be_made_leaves_the_numbers(compared, monkeypatch, tmp_path):
    def broken(*_, **__):
        raise RuntimeError("no <font> at all")

    monkeypatch.setattr("agewise.report.page.inline_svg", broken)
    page = write_page(compared, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "This picture could not be made: no &lt;font&gt; at all" in page
    assert estimate_text(compared.table().rows[0].at[8]) in page


def test_a_sweep_has_a_map_and_starts_with_the_scenario_itself(swept, tmp_path):
    page = write_page(swept, tmp_path / "s.html").read_text(encoding="utf-8")
    assert '<option value="0">rate=4, partition=shards</option>' in page
    drawn = swept.map()
    assert (drawn.policies, drawn.baseline) == (["age-based"], "max-pack")
    assert drawn.columns == ["1", "4"]
    assert drawn.rows == ["partition=iid", "partition=shards"]
    variation = {"threshold.rate": 4.0, "data.partition": "iid"}
    gain = swept.accuracy("age-based", variation) - swept.accuracy("max-pack", variation)
    assert drawn.gains[0, 0, 1] == pytest.approx(gain[:, -1].mean())
    table = swept.table()
    row = next(row for row in table.rows if row.variation == variation and row.gains)
    assert drawn.squares[0, 0, 1] is row.gains[8.0] or drawn.squares[0, 0, 1] == row.gains[8.0]
    assert drawn.where == "after 8 rounds"
    assert page.count("Gain of age-based over max-pack after 8 rounds") == 1
    assert headline(page) == "With 2 seeds no verdict on age-based"
    where = page[page.index('id="where"') : page.index('id="hero"')]
    assert "Too few seeds for a verdict: 2." in where
    assert not any(said in where for said in ("Stars", "pale squares", "differences of the seeds"))


def test_a_sweep_without_a_rectangle_has_a_row_each():
    odd = [{"a.x": 1, "a.y": 1}, {"a.x": 2, "a.y": 1}, {"a.x": 2, "a.y": 2}]
    assert _layout(odd) == (None, [None], odd)


def test_no_text_of_a_file_becomes_markup(tmp_path):
    out = tmp_path / "<img src=x onerror=alert(1)>"
    made = agewise.compare(tiny(), [Evil(), "max-pack"], 2, out, engine="inline", quiet=True)
    rewrite(out / "experiment.json", command="</script><script>window.hacked=1</script>")
    (out / "runs" / "<script>alert(1).parquet").write_bytes(b"not parquet")
    page = write_page(out, tmp_path / "report.html").read_text(encoding="utf-8")
    head, data = page.split('<script type="application/json" id="data">')
    assert "<img" not in head
    assert "<script" not in head
    assert "<image src" not in head
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in head
    assert "&lt;script&gt;alert(1).parquet" in head
    assert data.split("</script>")[0].count("<") == 0
    assert made.policies[0].name == Evil.name


def test_what_is_missing_is_said_and_the_rest_is_shown(copied, tmp_path):
    files = sorted((copied / "runs").glob("*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:200])
    files[1].unlink()
    result = agewise.Result.open(copied)
    page = write_page(result, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "2 of 12 runs are not finished" in page
    assert f"Damaged: copy/runs/{files[0].name}" in unescape(page)
    assert "2 of 3 seeds missing" in page
    assert len(pictures(page)) == 16


def test_runs_of_other_versions_and_scenarios_are_named(copied, swept, tmp_path):
    foreign = next((swept.path / "runs").glob("*iid*.parquet"))
    (copied / "runs" / foreign.name).write_bytes(foreign.read_bytes())
    page = write_page(copied, tmp_path / "r.html").read_text(encoding="utf-8")
    assert f"{foreign.name}: no run of this experiment has this name" in page
    rewrite(copied / "experiment.json", agewise="0.0.9")
    damaged = agewise.Result.open(copied).damaged
    assert sum("not 0.0.9, as its name says" in sentence for sentence in damaged) == 12


def test_a_policy_without_a_run_keeps_the_colours_of_the_others(copied, tmp_path):
    for file in (copied / "runs").glob("age-based*"):
        file.unlink()
    page = write_page(copied, tmp_path / "r.html").read_text(encoding="utf-8")
    text, lines = pictures(page)["s0-accuracy"]
    assert list(lines) == ["max-pack", "max-pack:ties=lowest-index", "round-robin"]
    assert "var(--p1)" in text
    assert "var(--p0)" not in text
    seed = unpacked(embedded(page)["replays"][0]["first"])
    assert [run["policy"] for run in seed["runs"]] == [1, 2, 3]


def test_a_folder_without_results_is_one_sentence(copied, tmp_path):
    for file in (copied / "runs").glob("*"):
        file.unlink()
    with pytest.raises(ValueError, match="no run is finished yet") as told:
        write_page(copied, tmp_path / "r.html")
    assert "\n" not in str(told.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="not a results folder"):
        write_page(tmp_path / "empty", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_one_policy_alone_is_described_without_its_data(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 3)), rng.integers(0, 3, 60)
    source = tmp_path / "data.npz"
    np.savez(source, x_train=x, y_train=y, x_test=x, y_test=y)
    dataset = {"kind": "npz", "path": str(source)}
    scenario = tiny(**{"data.dataset": dataset, "data.partition": "iid"})
    agewise.run(scenario, seeds=1, out=tmp_path / "r", engine="inline", quiet=True)
    source.unlink()
    page = write_page(tmp_path / "r").read_text(encoding="utf-8")
    assert "s0-gain" not in pictures(page)
    assert "s0-heat-0" in pictures(page)
    assert headline(page).startswith("age-based reaches ")
    assert "could not be made" not in page


def test_a_trace_has_no_distances_and_no_map_of_places(traced, tmp_path):
    (traced.path.parent / "gains.npz").rename(tmp_path / "elsewhere.npz")
    try:
        page = write_page(traced.path, tmp_path / "r.html").read_text(encoding="utf-8")
    finally:
        (tmp_path / "elsewhere.npz").rename(traced.path.parent / "gains.npz")
    assert not {"s0-distance", "s0-classes", "s0-cell-0"} & set(pictures(page))
    assert "could not be made" not in page
    assert "do not say where the phones are" in page
    seed = unpacked(embedded(page)["replays"][0]["first"])
    assert seed["positions"] is None
    gain = traced.history("max-pack", seed["seed"]).eligible.gain.mean(axis=1)
    assert np.argsort(seed["rank"]).tolist() == np.argsort(-gain).tolist()
    assert seed["ranked"] == 5
    assert Setting(traced, {}).served("age-based") is None


def test_too_much_is_not_replayed(compared, monkeypatch, tmp_path):
    monkeypatch.setattr(_replay, "_MOST_OWNERS", 4 * 8 * 5 - 1)
    assert embedded(write_page(compared, tmp_path / "r.html").read_text())["replays"] == [None]
    monkeypatch.undo()
    packed = _replay.replay(Setting(compared, {}))
    monkeypatch.setattr(_replay, "_MOST_BYTES", len(packed["rest"][0]))
    fewer = _replay.replay(Setting(compared, {}))
    assert (fewer["rest"], fewer["seeds"]) == (packed["rest"][:1], packed["seeds"][:1])


def test_the_page_is_the_same_from_the_result_and_from_the_folder(page, compared):
    default = write_page(str(compared.path))
    assert default == compared.path / "report.html"
    assert default.read_text(encoding="utf-8") == page
    default.unlink()


def test_the_replay_holds_every_round_of_every_seed(compared):
    packed = _replay.replay(Setting(compared, {}))
    numbers_of = [packed["seed"], *packed["seeds"]]
    unpacked_seeds = map(unpacked, [packed["first"], *packed["rest"]])
    seeds = dict(zip(numbers_of, unpacked_seeds, strict=True))
    assert [each["seed"] for each in seeds.values()] == numbers_of
    assert sorted(seeds) == [0, 1, 2]
    for number, seed in seeds.items():
        run = next(run for run in seed["runs"] if run["policy"] == 3)
        history = compared.history("round-robin", number)
        np.testing.assert_array_equal(run["owner"], history.owner)
        assert run["lost"] == []
        np.testing.assert_allclose(run["accuracy"], 100 * history.accuracy, atol=0.005)
        positions = history.info.positions_m
        np.testing.assert_allclose(seed["positions"], 10 * positions, atol=0.5)
        assert (seed["steps"], seed["radius"]) == (None, 1000)


def test_the_replay_knows_where_moving_phones_are_in_every_round(moving):
    seed = unpacked(_replay.replay(Setting(moving, {}))["first"])
    at = np.cumsum([np.ravel(seed["positions"]), *seed["steps"]], axis=0)
    recorded = moving.history("max-pack", seed["seed"]).positions_m
    np.testing.assert_allclose(at.reshape(recorded.shape), 10 * recorded, atol=0.5)
    assert seed["radius"] >= 10 * np.hypot(*recorded.T).max() - 1
    assert np.ptp(recorded, axis=0).min() > 0, "they do move"
    once = agewise.compare(moving.scenario.with_(**{"run.rounds": 1}), ["max-pack"], 1, quiet=True)
    assert unpacked(_replay.replay(Setting(once, {}))["first"])["steps"] == []


def test_distances_of_moving_phones_are_those_of_the_rounds(moving):
    history = moving.history("max-pack", 0)
    every = np.hypot(history.positions_m[..., 0], history.positions_m[..., 1])
    np.testing.assert_allclose(_setting.distances_m(history), every.mean(axis=0), rtol=1e-6)
    heard = np.zeros(every.shape, bool)
    for t, ues in enumerate(history.received):
        heard[t, ues] = True
    radius_m = moving.scenario.channel.reach_m
    ring = np.minimum(every / radius_m * _setting.RINGS, _setting.RINGS - 1).astype(int)
    both = [(ring == r, heard) for r in range(_setting.RINGS)]
    expected = [(here & was).sum() / here.sum() if here.any() else np.nan for here, was in both]
    only = replace(moving, seeds=[0], entries=[e for e in moving.entries if e.seed == 0])
    found = Setting(only, {}).served("max-pack")
    np.testing.assert_allclose(found, expected)


def test_phones_are_ranked_by_age_per_subchannel_needed(compared):
    setting = Setting(compared, {})
    for name, policy in (
        ("age-based", "age-based"),
        ("max-pack", PACK),
    ):
        history = compared.history(policy, setting.seed)
        eligible, ranking = history.eligible, _idea.rank(setting, name)
        assert (eligible.t, ranking.t) == (4, 4)
        score = [2 * age**0.5 / need if need else 0.0
                 for age, need in zip(history.ages[3], eligible.need, strict=True)]  # fmt: skip
        np.testing.assert_allclose(ranking.score, sorted(score, reverse=True))
        np.testing.assert_allclose(
            sorted(ranking.score[ranking.chosen]), sorted(np.array(score)[history.scheduled[4]])
        )
        held = history.owner[4]
        at = ranking.gain[ranking.owner, np.arange(5)][held >= 0]
        np.testing.assert_array_equal(at, eligible.gain[held, np.arange(5)][held >= 0])
        assert ((ranking.owner < 0) == (held < 0)).all()


def test_the_rival_is_the_most_usual_age_based_one(compared):
    odd, usual, other = (
        make_policy(name).key
        for name in ("age-based:alpha=1,packing=exact", "age-based:ties=lowest-index", "whittle")
    )
    pack, exact = make_policy("max-pack").key, make_policy("max-pack:packing=exact").key
    for policies, baseline, rival in (
        ([pack, other, odd, usual], pack, usual),
        ([exact, pack, AgeBased().key, odd], exact, AgeBased().key),
        ([exact, other, pack], pack, exact),
        ([AgeBased().key, other], AgeBased().key, other),
    ):
        result = replace(compared, policies=policies, baseline=baseline)
        assert result.compared == [rival, baseline]
    assert replace(compared, policies=[odd], baseline=None).compared == [odd]
    assert replace(compared, policies=[odd], baseline=odd).compared == [odd]


def test_another_baseline_changes_the_headline(compared, tmp_path):
    page = write_page(compared, tmp_path / "r.html", baseline="round-robin").read_text()
    table = agewise.Result.open(compared.path, "round-robin").table()
    assert headline(page).endswith(
        f"{points_text(table.rows[0].gains[8].mean)} points after 8 rounds"
    )
    assert "below it the gain over round-robin" in page


def test_the_page_shows_the_channel_that_the_folder_holds(compared, swept):
    assert "The radio behind it" not in make_page(compared)
    kept = agewise.keep_channel_of(compared)
    view = agewise.view_channel(compared.scenario, 0)
    try:
        page = make_page(compared)
        assert {"radio-places", "radio-snr", "radio-need"} <= set(pictures(page))
        assert f"a mean SNR below {np.median(view.mean_snr_db):.0f} dB" in plain(page)
        assert f"is enough in {100 * view.needed[1]:.0f}% of all cases" in plain(page)
        assert "image/png" not in page.split('class="pic"')[0], "figures take the page's colours"
        kept.write_bytes(b"<script>")  # no measurements
        broken = make_page(compared)
        assert "radio-snr" not in pictures(broken)
        assert "This picture could not be made" in broken
        assert "<script>" not in broken.split('id="data"')[0]
    finally:
        kept.unlink()
    assert agewise.keep_channel_of(swept) is None


def test_devices_and_late_updates_have_their_pictures(tmp_path):
    each = {"near": {"share": 0.5, "power_db": 10.0}, "far": {"share": 0.5, "power_db": -10.0}}
    classes = {"kind": "classes", "classes": each}
    mixed = agewise.compare(
        tiny(devices=classes), ["age-based", "max-pack"], 2, tmp_path / "m", engine="inline",
        quiet=True,
    )  # fmt: skip
    setting = Setting(mixed, {})
    found = setting.by_class("max-pack", lambda history: history.ages.mean(axis=0))
    weak = []
    for seed, history in mixed.histories("max-pack").items():
        table = mixed.scenario.device_table(agewise.Streams(seed))
        far = table.class_of == list(table.class_names).index("far")
        weak.append(history.ages.mean(axis=0)[far].mean())
    assert found["far"] == pytest.approx(np.mean(weak))
    drawn = pictures(make_page(mixed))
    assert "s0-devices" in drawn
    assert "s0-staleness" not in drawn, "all updates start from the newest model"


def test_a_page_of_nine_policies_is_small(tmp_path):
    """On the paper's cell, with all pictures and as much of the replay as any number of seeds."""
    paper = agewise.Scenario.preset("paper")
    result = agewise.compare(paper, NINE, 2, tmp_path, engine="inline", quiet=True)
    assert write_page(result).stat().st_size + _replay._MOST_BYTES < 900_000


def test_every_policy_has_its_own_look():
    """Twelve have a colour and a marker each; more differ at least in both together."""
    assert len({(_style.colour(i), _style.marker(i)) for i in range(100)}) == 100
    assert len({(_style.colour(i), str(_style.dash(i))) for i in range(60)}) == 60
    assert len({_style.colour(i) for i in range(12)}) == len(LIGHT) == len(DARK) == 12
    assert len({_style.marker(i) for i in range(12)}) == 12
