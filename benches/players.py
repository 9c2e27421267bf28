"""Makes a player that azpy brings along of a run: `az-play GAME` plays it before anything is trained.

    python benches/players.py RUN GAME

writes azpy/players/GAME: the settings, without comments, and the weights of the newest checkpoint. The weights are
rounded to bfloat16, so that a wheel keeps them in half of the space. It prints how far the rounded network's answers
are from the run's, on positions of the run's last games.
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from azpy import ReplayBuffer
from azpy.evaluators.drift import drift, rows_to_compare
from azpy.evaluators.net import NetEvaluator
from azpy.runs.reader import StoredRun, checkpoint_at, read_model
from azpy.runs.storage import output_folder, write_synced

_WEIGHTS = "model.safetensors"
_TOP_BITS = np.uint32(0xFFFF0000)


def main() -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("game")
    given = parser.parse_args()
    run, checkpoint = StoredRun(given.run), checkpoint_at(given.run)
    weights = {
        name: ((array.view(np.uint32) + np.uint32(0x8000)) & _TOP_BITS).view(np.float32)
        if array.dtype == np.float32
        else array
        for name, array in load(read_model(checkpoint, _WEIGHTS)).items()
    }
    data = save(weights)
    folder = Path(__file__).parents[1] / "azpy" / "players" / given.game
    with output_folder(folder) as new:
        place = new / "checkpoints" / checkpoint.name
        place.mkdir(parents=True)
        write_synced(place / _WEIGHTS, data)
        manifest = {_WEIGHTS: hashlib.sha256(data).hexdigest()}
        write_synced(place / "manifest.json", (json.dumps(manifest, indent=1) + "\n").encode())
        lines = (given.run / "config.toml").read_text().splitlines(keepends=True)
        write_synced(new / "config.toml", "".join(line for line in lines if line[0] not in "#\n").encode())
    buffer = ReplayBuffer(run.start)
    buffer.extend([game for _, game in run.games(run.sealed_iterations()[-1:])])
    found = drift(
        NetEvaluator(given.run, game=run.start), NetEvaluator(folder, game=run.start), *rows_to_compare(buffer, seed=0)
    )
    print(f"{folder}: {len(data):,} bytes; {found}")


if __name__ == "__main__":
    main()
