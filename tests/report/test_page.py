"""The page without a browser: what it says, what it escapes, and what it does with bad folders."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import plotly.graph_objects as go
import pytest

import agewise
from agewise.policies import AgeBased, make_policy
from agewise.records import History
from agewise.report import charts, numbers, write_page
from agewise.report.verdict import compared as compared_policies
from tests.experiment.watch import rewrite
from tests.report.conftest import Evil
from tests.scenarios import tiny


@pytest.fixture(scope="module")
def page(compared, tmp_path_factory):
    path = write_page(compared, tmp_path_factory.mktemp("page") / "report.html")
    return path.read_text(encoding="utf-8")


def embedded(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_verdict_comes_first_with_its_numbers(page, compared):
    order = ["<h1", 'class="answer"', "<table", "data-chart=", 'id="replay"', 'id="toml"']
    places = [page.index(part) for part in order]
    assert places == sorted(places)
    assert "Does age-based learn better than max-pack (ties=random) when 12 UEs share" in page
    for row in compared.table().to_dicts():
        assert f"{100 * row['accuracy@8']:.1f} <span" in page
        assert f"[{100 * row['low@8']:.1f}, {100 * row['high@8']:.1f}]" in page
        if row["gain@8"] is not None:
            assert f"{100 * row['gain@8']:+.1f}, p " in unescape(page)
    assert "Missing:" not in page


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
    assert not re.search(r'<(script|img|link|iframe)[^>]+(src|href)="', page.split("<script")[0])


def test_plotly_takes_every_chart(page, swept, tmp_path):
    both = [page, write_page(swept.path, tmp_path / "s.html").read_text(encoding="utf-8")]
    for data in map(embedded, both):
        for variation in data["variations"]:
            assert len(variation["charts"]) == 8
            for chart in [*variation["charts"].values(), *data["maps"]]:
                go.Figure(chart)  # raises on a property that it does not know


def test_charts_show_what_the_runs_did(compared):
    curves = numbers.curves(compared, {})
    drawn = {t["name"]: t for t in charts.accuracy(curves)["data"] if "name" in t}
    mean = 100 * compared.accuracy("age-based").mean(axis=0)
    np.testing.assert_allclose(drawn["age-based"]["y"], mean, atol=1e-3)
    history = compared.history("round-robin", 0)
    peaks = [compared.history("round-robin", s).ages.max(axis=1) for s in range(3)]
    np.testing.assert_allclose(curves["round-robin"].age_largest, np.mean(peaks, axis=0))
    share = [compared.history("round-robin", s).participation / len(history) for s in range(3)]
    positions = [compared.history("round-robin", s).info.positions_m for s in range(3)]
    far = np.concatenate([np.hypot(*each.T) for each in positions]) >= 90
    assert curves["round-robin"].served[-1] == pytest.approx(np.concatenate(share)[far].mean())


def test_a_sweep_has_a_map_and_starts_with_the_scenario_itself(swept, tmp_path):
    page = write_page(swept, tmp_path / "s.html").read_text(encoding="utf-8")
    assert '<option value="0">rate=4, partition=shards</option>' in page
    drawn = numbers.sweep_map(swept)
    assert (drawn.policies, drawn.baseline) == (["age-based"], "max-pack")
    assert drawn.columns == ["1", "4"]
    assert drawn.rows == ["partition=iid", "partition=shards"]
    variation = {"threshold.rate": 4.0, "data.partition": "iid"}
    gain = swept.accuracy("age-based", variation) - swept.accuracy("max-pack", variation)
    assert drawn.gains[0, 0, 1] == pytest.approx(gain.mean())


def test_a_sweep_without_a_rectangle_has_a_row_each():
    odd = [{"a.x": 1, "a.y": 1}, {"a.x": 2, "a.y": 1}, {"a.x": 2, "a.y": 2}]
    assert numbers.layout(odd) == (None, [None], odd)


def test_no_text_of_a_file_becomes_markup(tmp_path):
    out = tmp_path / "<img src=x onerror=alert(1)>"
    made = agewise.compare(tiny(), [Evil(), "max-pack"], 2, out, engine="inline", quiet=True)
    rewrite(out / "experiment.json", command="</script><script>window.hacked=1</script>")
    (out / "runs" / "<script>alert(1).parquet").write_bytes(b"not parquet")
    page = write_page(out, tmp_path / "report.html").read_text(encoding="utf-8")
    head, data = page.split('<script type="application/json" id="data">')
    assert "<img" not in head
    assert "<script" not in head
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
    assert {len(v["charts"]) for v in embedded(page)["variations"]} == {8}


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
    data = embedded(page)
    traces = data["variations"][0]["charts"]["age_mean"]["data"]
    assert [t["line"]["color"] for t in traces] == [p["colour"] for p in data["policies"][1:]]
    assert [p["index"] for p in data["variations"][0]["replay"]["policies"]] == [1, 2, 3]


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
    heat = embedded(page)["variations"][0]["charts"]["labels"]["data"][0]
    assert np.sum(heat["z"]) == 60
    assert "How well does age-based learn" in page
    assert "one seed, so no test" in page


def test_a_trace_has_no_distances_and_no_map_of_places(traced, tmp_path):
    (traced.path.parent / "gains.npz").rename(tmp_path / "elsewhere.npz")
    try:
        page = write_page(traced.path, tmp_path / "r.html").read_text(encoding="utf-8")
    finally:
        (tmp_path / "elsewhere.npz").rename(traced.path.parent / "gains.npz")
    variation = embedded(page)["variations"][0]
    assert variation["charts"]["distance"] is None
    assert "where the UEs are" in variation["notes"]["distance"]
    assert variation["replay"]["positions"] is None
    assert "in rows" in variation["notes"]["replay"]
    assert variation["charts"]["labels"] is not None
    assert numbers.curves(traced, {})["age-based"].served is None


def test_records_without_labels_leave_a_sentence(compared, monkeypatch, tmp_path):
    monkeypatch.setattr(numbers, "labels", lambda *_: None)
    monkeypatch.setattr(numbers, "MOST_AGES", 4 * 8 * 12 - 1)
    variation = embedded(write_page(compared, tmp_path / "r.html").read_text())["variations"][0]
    assert (variation["charts"]["labels"], variation["replay"]) == (None, None)
    assert "which classes" in variation["notes"]["labels"]
    assert "too many" in variation["notes"]["replay"]


def test_the_page_is_the_same_from_the_result_and_from_the_folder(compared, swept, tmp_path):
    for result in (compared, swept):
        default = write_page(result)
        assert default == result.path / "report.html"
        path = write_page(str(result.path), tmp_path / "given.html")
        assert path.read_bytes() == default.read_bytes()
        default.unlink()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_the_replay_holds_the_ages_of_every_round(compared, monkeypatch, dtype):
    grown = 300 if dtype is np.uint16 else 0
    real = History.ages.fget
    monkeypatch.setattr(History, "ages", property(lambda self: real(self) + grown))
    packed = numbers.replay(compared, {})["policies"][3]
    assert (packed["name"], packed["age_bytes"]) == ("round-robin", dtype().itemsize)
    ages = np.frombuffer(base64.b64decode(packed["ages"]), dtype).reshape(8, 12)
    history = compared.history("round-robin", 0)
    np.testing.assert_array_equal(ages[0], 0)
    np.testing.assert_array_equal(ages[1:], history.ages[:-1])
    assert packed["reached"] == history.frame["reached"].to_list()


def test_the_rival_is_the_most_usual_age_based_one(compared):
    odd, usual, plus = (
        make_policy(name).key
        for name in ("age-based:alpha=1", "age-based:ties=lowest-index", "age-based-plus")
    )
    pack, exact = make_policy("max-pack").key, make_policy("max-pack-exact").key
    for policies, baseline, rival in (
        ([pack, plus, odd, usual], pack, odd),
        ([exact, pack, AgeBased().key, odd], exact, AgeBased().key),
        ([exact, plus, pack], pack, exact),
        ([AgeBased().key, plus], AgeBased().key, plus),
    ):
        result = replace(compared, policies=policies, baseline=baseline)
        assert compared_policies(result) == [rival, baseline]
    assert compared_policies(replace(compared, policies=[odd], baseline=None)) == [odd]
    assert compared_policies(replace(compared, policies=[odd], baseline=odd)) == [odd]


def test_another_baseline_changes_the_question(compared, tmp_path):
    page = write_page(compared, tmp_path / "r.html", baseline="round-robin").read_text()
    assert "Does age-based learn better than round-robin when" in page
    assert "under it the gain over round-robin" in page
