"""Scheduler cases: noise levels, and update steps with pinned tokens."""

import torch

from sanawm_cli.rollout.schedule import TIMESTEPS, euler, levels, schedule
from sanawm_cli.verify.cases import Case, placed
from sanawm_cli.verify.report import CaseReport, Comparison


def verify_schedule(case: Case, device: torch.device, dtype: torch.dtype) -> CaseReport:
    """Step through the case's own model outputs; tokens stand in for frames.

    `s{k}.model_output` is −v (its callers negate), each step starts from the `out` before it.
    """
    wide = torch.promote_types(dtype, torch.float32)
    given = {name: placed(tensor, device, wide) for name, tensor in case.tensors.items()}
    comparison = Comparison(case.name, case.kind)
    steps = [round(s * TIMESTEPS) for s in case.tensors["in.sigmas_explicit"].tolist()]
    plan = schedule([*steps, *([] if steps[-1] == 0 else [0])])
    for name, values in (("out.sigmas", plan.sigmas), ("out.timesteps", plan.timesteps)):
        if name in given:
            have = torch.tensor(values, dtype=torch.float32, device=device)
            comparison.add("noise levels", name, have, given[name])
    sample = given["in.sample"]  # b n c
    for step, (now, then) in enumerate(zip(plan.sigmas, plan.sigmas[1:], strict=False)):
        moved: list[torch.Tensor] = []
        for row, mask in zip(sample, given["in.cond_mask_tokens"], strict=True):
            pinned = mask.bool().tolist()
            x = row.mT[None, :, :, None, None]  # 1 c n 1 1
            velocity = -given[f"s{step}.model_output"][len(moved)].mT[None, :, :, None, None]
            x = euler(x, velocity, levels(now, pinned, x), levels(then, pinned, x))
            moved.append(x[0, :, :, 0, 0].mT)
        comparison.add("step", f"s{step}.out", torch.stack(moved), given[f"s{step}.out"])
        sample = given[f"s{step}.out"]
    return comparison.report()
