"""Is filtering worth its control traffic? Section 4 of the leased routing paper, all of Figure 2.

    python benchmarks/routing.py [--subscriptions 0 1000 ... 500000] [--publications 2000] [--json]

b_s and b_c for the eight combinations of omega, rho and mu, in closed form and simulated, and where
they cross. Simulated and closed form are computed by different code; their difference is shown.
"""

import argparse
import json
import time
from random import Random
from typing import Any

from planaria.lab.routing.analysis import (
    MUS,
    OMEGAS,
    PAPER,
    RHOS,
    combinations,
    control,
    crossing,
    saved,
)
from planaria.lab.routing.experiment import simulate

# By the printed flag rule a broker passes a filter's refresh on once in pi, not once in rho (4.1:
# 60.2 s and 600.2 s), and loses entries (erratum 1); what that saves is the difference to b_c.
PRINTED_SLACK = 0.2
DEFAULT = (1_000, 10_000, 50_000, 100_000, 200_000, 300_000, 500_000)


def rows(sizes: list[int], publications: int) -> list[dict[str, Any]]:
    found = []
    for size in sizes:
        for rho in RHOS:
            for mu in MUS:
                start = time.process_time()
                rng = Random(f"{size}/{rho}/{mu}")
                run = simulate(PAPER, size, rho, mu, max(rho, 1 / mu), publications, rng)
                row = {
                    "subscriptions": size,
                    "rho": rho,
                    "mu_inverse": round(1 / mu),
                    "bc_closed": control(PAPER, size, rho, mu),
                    "bc_simulated": run.control,
                    "bc_printed": control(PAPER, size, rho + PRINTED_SLACK, mu),
                    "cpu_seconds": time.process_time() - start,
                }
                for number, omega in enumerate(OMEGAS, 1):
                    row[f"bs{number}_closed"] = saved(PAPER, size, omega)
                    row[f"bs{number}_simulated"] = omega * run.saved
                    row[f"bs{number}_error"] = omega * 1.96 * run.saved_error
                    row[f"bs{number}_drawn"] = omega * (PAPER.links - run.transmissions)
                found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--subscriptions", type=int, nargs="+", default=DEFAULT)
    parser.add_argument("--publications", type=int, default=2_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = rows(list(options.subscriptions), options.publications)
    crossings = [
        {"omega": omega, "rho": rho, "mu_inverse": round(1 / mu), "subscriptions": found}
        for omega, rho, mu in combinations()
        if (found := crossing(PAPER, omega, rho, mu)) is not None
    ]
    if options.json:
        print(json.dumps({"rows": table, "crossings": crossings}))
        return
    print("b_s1: closed form; simulated, over all publications there could be, with 95 %; as drawn")
    print(
        "      N   rho  1/mu  b_c closed simulated  printed  b_s1 closed simulated   95 %    drawn"
    )
    for it in table:
        print(
            f"{it['subscriptions']:>7} {it['rho']:>5.0f} {it['mu_inverse']:>5}"
            f" {it['bc_closed']:>11.1f} {it['bc_simulated']:>9.1f} {it['bc_printed']:>8.1f}"
            f" {it['bs1_closed']:>12.1f} {it['bs1_simulated']:>9.1f} {it['bs1_error']:>6.1f}"
            f" {it['bs1_drawn']:>8.1f}"
        )
    print("\nfrom so many subscriptions on flooding is cheaper:")
    for it in crossings:
        print(
            f"omega {it['omega']:>5.0f}/s  rho {it['rho']:>4.0f} s  1/mu {it['mu_inverse']:>4} s"
            f"  {it['subscriptions']:>9,.0f}"
        )


if __name__ == "__main__":
    main()
