"""`az-doctor`: what is installed, what works, how fast this machine is, and what to do next.

With --workers PLACE it also looks at the shared folder of a run as a worker would: whether the folder can be written,
its renames are atomic, az-train is there with this version of azpy, and a deterministic run's networks give its bits.

Exit code 2: an installed part does not work, or no worker can play at PLACE (the lines say what to do).
"""

import json
from collections.abc import Sequence
from typing import Any

from azpy.cli.common import Parser, command
from azpy.devices import KINDS
from azpy.doctor import advice, examine, usable
from azpy.errors import SettingsError, one_line
from azpy.fleet.channels.folder import FOLDER
from azpy.fleet.inspection import inspect_place


def _doctor(arguments: Sequence[str]) -> int:
    parser = Parser("az-doctor", __doc__)
    parser.add_argument("--json", action="store_true", help="print everything as JSON, with the advice")
    parser.add_argument("--no-speed", action="store_true", help="leave out the speed check")
    text = "also look at the shared folder of a run with --workers folder:PLACE, from a worker's machine"
    parser.add_argument("--workers", nargs="?", const="", metavar="PLACE", help=text)
    given = parser.parse_args(arguments)
    place = None if given.workers is None else given.workers.removeprefix(FOLDER)
    if place == "":
        raise SettingsError("--workers needs the shared folder of the run: az-doctor --workers PLACE")
    report = examine(speed=not given.no_speed)
    lines = advice(report)
    findings = [] if place is None else list(inspect_place(place))
    works = usable(report) and not any(finding.is_fault for finding in findings)
    if given.json:
        found = {} if place is None else {"workers": [finding._asdict() for finding in findings]}
        print(json.dumps(report | {"usable": usable(report), "advice": lines} | found, indent=2))
    else:
        print("\n".join(_text(report)))
        if place is not None:
            print(f"\nWorkers at {one_line(place)}:")
        for finding in findings:
            print(_row(finding.name, one_line(f"{finding.text}{finding.advice and f': {finding.advice}'}")))
        print("\nNext:" if lines else "" if any(finding.advice for finding in findings) else "\nNothing to do.")
        print("".join(f"  - {line}\n" for line in lines), end="", flush=True)
    return 0 if works else 2


def _text(report: dict[str, Any]) -> list[str]:
    packages, cpu, memory, speed = report["packages"], report["cpu"], report["memory"], report["speed"]
    lines = [f"azpy {report['azpy']}, Python {report['python']}, {report['system']}"]
    lines += [f"core with games of your own: {report['core']}"] if report["core"] != "azpy._core" else []
    lines.append("")
    lines += [_row(name, version or "not installed") for name, version in packages.items()]
    lines += [_row(name, f"does not load: {why}") for name, why in report["broken"].items()]
    lines += ["", "ONNX Runtime's devices:"]
    for device, why in report["providers"].items():
        title = KINDS[device].title
        lines.append(_row(title, f"no: {why.removeprefix(f'{title} cannot be used: ')}" if why else "works"))
    lines.append(_row("torch on a GPU", f"no: {report['torch_gpu']}" if report["torch_gpu"] else "works"))
    titles = {about.provider: about.title for about in KINDS.values()}
    lines += ["", "Devices that ONNX Runtime finds:"] if report["devices"] else []
    for each in report["devices"]:
        text = f"{each['kind']} of {each['vendor']}" + (each["says"] and f", {each['says']}")
        lines.append(_row(titles.get(each["provider"], each["provider"]), one_line(text)))
    lines += ["", _row("CPU", f"{cpu['name']}, {', '.join(cpu['features']) or 'no vector extensions known'}")]
    quota = "" if cpu["quota"] is None else f", {cpu['quota']:g} by the control group's limit"
    lines.append(_row("cores", f"{cpu['usable']} usable of {cpu['cores']} ({cpu['affinity']} allowed{quota})"))
    sizes = [f"{size / 2**30:.1f} GiB {name}" for name, size in memory.items() if size]
    lines.append(_row("memory", ", ".join(sizes) or "unknown"))
    gpus = [f"{gpu['name']}, {gpu.get('memory')}, driver {gpu.get('driver')}" for gpu in report["gpus"]]
    lines += [_row("GPU", gpu) for gpu in gpus or ["none that nvidia-smi knows"]]
    lines += [_row(name, value) for name, value in report["environment"].items()]
    if speed is not None:
        lines += ["", "One thread does:"]
        lines.append(_row("search", f"{speed['simulations_per_second']:,.0f} simulations/s, evaluator uniform"))
        if "evaluations_per_second" in speed:
            text = f"{speed['evaluations_per_second']:,.0f} evaluations/s, 8 convolutions of 32 channels on 6 x 7"
            lines.append(_row("network", text))
    return lines


def _row(name: str, text: str) -> str:
    return f"  {name:<16} {text}"


main = command("az-doctor", _doctor)
