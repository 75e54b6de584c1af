"""What a large corpus takes before the first step, and a draw from it: `python -m benchmarks.corpora 100000`.

Prints, of so many short made-up records: processor seconds to plan, to encode and to hash them; how much anonymous memory
that added at most (Linux; pages of mapped files are the kernel's to drop and do not count); seconds of one draw from 10^8.
"""

from __future__ import annotations

import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from taciturn.mechanisms.corpus import encoded
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.settings import RunConfig
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.screening.corpus.screened import load
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import read
from taciturn.training.given import facts
from taciturn.training.randomness.gaussian import SecretSource


def anonymous() -> float:
    """MiB of this process that no file is behind."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


class Peak(threading.Thread):
    """The most there was, looked at every 5 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.done = 0.0, False

    def run(self) -> None:
        while not self.done:
            self.most = max(self.most, anonymous())
            time.sleep(0.005)


def measure(records: int) -> str:
    settings = RunConfig(
        mechanism="dpsgd",
        corpus=Path("made"),
        model={"name": "lstm", "tokenizer": "bytes"},
        delta=1e-12,
        options={"steps": 2, "batch": 256, "noise_multiplier": 1.0},
    )
    tokenizer = byte_tokenizer()
    with TemporaryDirectory() as place:
        lines, folder = Path(place) / "lines.txt", Path(place) / "screened"
        with lines.open("w") as out:
            out.writelines(f"order {i} came on day {i % 365}, call (555) 010-{i % 9999:04}\n" for i in range(records))
        found = screen(read(str(lines), format="lines"), policy("phone"), policy("conservative"), unit="document",
                       dedup="none", skeletons=False, out=folder)  # fmt: skip
        del found
        first = encoded(
            tokenizer, made := make_plan(settings, load(folder)), made.phases[0], load(folder), 64, Path(place)
        )
        del first  # imports and pools are there now; what more records add is what counts
        before, peak, clock = anonymous(), Peak(), [time.process_time()]
        peak.start()
        corpus = load(folder)
        plan = make_plan(settings, corpus)
        clock.append(time.process_time())
        tokens = encoded(tokenizer, plan, plan.phases[0], corpus, 64, Path(place))
        clock.append(time.process_time())
        facts(plan, {plan.phases[0].name: tokens}, {})
        clock.append(time.process_time())
        peak.done = True
        SecretSource().coins(1, 10**8, 1e-6)
        clock.append(time.process_time())
        planned, coded, hashed, drawn = (b - a for a, b in pairwise(clock))
    return (
        f"{records} records, {len(tokens.flat)} tokens: plan {planned:.2f} s, encode {coded:.1f} s, hash {hashed:.2f} s, "
        f"memory + {peak.most - before:.0f} MiB; a draw from 10^8: {drawn:.2f} s"
    )


if __name__ == "__main__":
    for number in sys.argv[1:] or ["100000"]:
        print(measure(int(number)), flush=True)
