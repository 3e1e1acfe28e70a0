import {
  curl,
  quoted,
  useKeys
} from "./shared-3.js";
import {
  Ago,
  Copied,
  Icon,
  Loading,
  Problem,
  add,
  address,
  call,
  duration,
  maybe,
  t,
  useAct,
  useRead
} from "./shared.js";

// pkg/portal/web/src/actions.tsx
import { useSignal } from "./library.js";
import { useEffect, useRef } from "./library.js";

// pkg/portal/web/src/text-actions.ts
var en = {
  "action.actions": "Actions",
  "action.cordon": "Cordon",
  "action.uncordon": "Uncordon",
  "action.drain": "Drain",
  "action.stop-job": "Stop the job",
  "action.requeue-job": "Requeue the job",
  "action.reset-gpu": "Reset the GPU",
  "action.restart-machine": "Restart",
  "action.by.policy": "policy",
  "action.by.operator": "operator",
  "action.dry": "(dry run)",
  "action.phase.New": "New",
  "action.phase.Pending": "Waits for a limit",
  "action.phase.Noticed": "In its grace",
  "action.phase.Acting": "Acting",
  "action.phase.Succeeded": "Succeeded",
  "action.phase.Failed": "Failed",
  "action.phase.Refused": "Refused",
  "action.phase.Expired": "Expired",
  "action.phase.Canceled": "Canceled",
  "action.acts": "It begins",
  "action.parts": "{done} of {n} parts are done.",
  "action.reasonHere": "WHY",
  "action.moves": "Jobs with tasks on this machine, which move elsewhere: {n}",
  "action.stays": "Jobs with tasks on this machine, which continue: {n}",
  "action.andMore": "and {n} more",
  "action.ask.cordon": "Cordon {machine}?",
  "action.ask.uncordon": "Uncordon {machine}?",
  "action.ask.drain": "Drain {machine}?",
  "action.more.cordon": "The machine gets no more jobs, and its jobs continue.",
  "action.more.uncordon": "The machine gets jobs again.",
  "action.more.drain": "The machine gets no more jobs. The tasks on it are stopped, and run again elsewhere. Disruption budgets hold.",
  "action.reason": "Why: people who are affected read it",
  "action.grace": "When",
  "action.now": "at once",
  "action.graceOf": "in {time}, after a notice",
  "action.dryRun": "Dry run",
  "action.dryRunMore": "Checks the request, says what would be done, and does nothing",
  "action.cancel": "Withdraw",
  "action.askCancel": "Withdraw the request: {operation} {target}?",
  "action.cancelMore": "It hasn't begun, and has no effect.",
  "action.cancelBegun": "The machine stays cordoned, and the pods that haven't moved stay.",
  "action.allOf": "All actions of this machine"
};
var zh = {
  "action.actions": "操作",
  "action.cordon": "停止调度",
  "action.uncordon": "恢复调度",
  "action.drain": "排空",
  "action.stop-job": "停止作业",
  "action.requeue-job": "作业重新排队",
  "action.reset-gpu": "重置 GPU",
  "action.restart-machine": "重启",
  "action.by.policy": "策略",
  "action.by.operator": "运维人员",
  "action.dry": "（试运行）",
  "action.phase.New": "新建",
  "action.phase.Pending": "因限额等待",
  "action.phase.Noticed": "宽限期内",
  "action.phase.Acting": "执行中",
  "action.phase.Succeeded": "成功",
  "action.phase.Failed": "失败",
  "action.phase.Refused": "被拒绝",
  "action.phase.Expired": "已过期",
  "action.phase.Canceled": "已撤回",
  "action.acts": "开始时间：",
  "action.parts": "已完成 {done} / {n} 项。",
  "action.reasonHere": "原因",
  "action.moves": "在此机器上有任务、将迁移到其他机器的作业：{n} 个",
  "action.stays": "在此机器上有任务、将继续运行的作业：{n} 个",
  "action.andMore": "另有 {n} 个",
  "action.ask.cordon": "停止向 {machine} 调度作业？",
  "action.ask.uncordon": "恢复向 {machine} 调度作业？",
  "action.ask.drain": "排空 {machine}？",
  "action.more.cordon": "该机器不再接收作业，其上的作业继续运行。",
  "action.more.uncordon": "该机器重新接收作业。",
  "action.more.drain": "该机器不再接收作业。其上的任务会停止，并在其他机器上重新运行。操作仍受干扰预算（PDB）约束。",
  "action.reason": "原因（受影响的用户可以看到）",
  "action.grace": "执行时间",
  "action.now": "立即",
  "action.graceOf": "通知后 {time} 执行",
  "action.dryRun": "试运行",
  "action.dryRunMore": "检查请求并说明将执行的操作，但不实际执行",
  "action.cancel": "撤回",
  "action.askCancel": "撤回请求：{operation} {target}？",
  "action.cancelMore": "该请求尚未开始执行，没有产生任何影响。",
  "action.cancelBegun": "该机器仍处于停止调度状态，尚未迁移的 Pod 保持不动。",
  "action.allOf": "该机器的全部操作"
};
add({ en, zh });

// pkg/portal/web/src/actions.tsx
import { Fragment, jsx, jsxs } from "./library.js";
var [often, seldom] = [1500, 15e3];
var final = ["Succeeded", "Failed", "Refused", "Expired", "Canceled"];
var family = { New: "wait", Pending: "wait", Noticed: "wait", Acting: "run", Succeeded: "good", Failed: "bad", Refused: "bad" };
function isFinal(a) {
  return final.includes(a.phase);
}
function isCancelable(a) {
  return !isFinal(a) && !a.canceled && (a.operation === "drain" || !a.started);
}
function interval(all) {
  return all?.every(isFinal) ?? true ? seldom : often;
}
function operationName(a) {
  return maybe("action." + a.operation, a.operation);
}
function requester(a) {
  return a.by.kind === "person" ? a.by.name : `${maybe("action.by." + a.by.kind, a.by.kind)} ${a.by.name}`;
}
function Phase({ a }) {
  return /* @__PURE__ */ jsxs("span", { class: `state ${family[a.phase] ?? "off"}`, children: [
    /* @__PURE__ */ jsx("i", { class: a.phase === "Acting" ? "dot beats" : "dot" }),
    maybe("action.phase." + a.phase, a.phase),
    a.dryRun ? /* @__PURE__ */ jsxs("span", { class: "faint", children: [
      " ",
      t("action.dry")
    ] }) : null
  ] });
}
function Outcome({ a }) {
  const left = (a.results ?? []).filter((r) => !r.done);
  return /* @__PURE__ */ jsxs("div", { class: "outcome", role: "status", "aria-live": "polite", children: [
    /* @__PURE__ */ jsxs("p", { children: [
      /* @__PURE__ */ jsx(Phase, { a }),
      " ",
      a.message
    ] }),
    a.phase === "Noticed" && a.acts ? /* @__PURE__ */ jsxs("p", { class: "faint", children: [
      t("action.acts"),
      " ",
      /* @__PURE__ */ jsx(Ago, { time: a.acts })
    ] }) : null,
    a.results?.length ? /* @__PURE__ */ jsx("p", { class: "faint", children: t("action.parts", { done: a.results.length - left.length, n: a.results.length }) }) : null,
    left.length ? /* @__PURE__ */ jsx("ul", { class: "small", children: left.slice(0, 20).map((r) => /* @__PURE__ */ jsxs("li", { children: [
      r.target,
      " ",
      r.message ? /* @__PURE__ */ jsx("span", { class: "faint", children: r.message }) : null
    ] }, r.target)) }) : null
  ] });
}
var graces = [0, 600, 1800, 3600, 7200, 14400, 43200, 86400, 259200, 604800];
function command(machine, operation, body) {
  return `paictl node ${operation} ${quoted(machine)} --reason ${quoted(body.reason || t("action.reasonHere"))}${body.graceSeconds ? ` --grace ${body.graceSeconds}s` : ""}`;
}
function useJobsOn(machine) {
  return useRead(machine, async (signal) => ((await call("GET /api/v3/status", { query: { parts: ["jobs"] }, signal })).jobs ?? []).filter((j) => j.live && j.nodes?.includes(machine)));
}
function Affected({ machine, operation }) {
  const { value, error } = useJobsOn(machine);
  const jobs = value.value;
  const most = 8;
  if (error.value) return /* @__PURE__ */ jsx(Problem, { of: error.value });
  if (!jobs) return /* @__PURE__ */ jsx(Loading, {});
  return /* @__PURE__ */ jsxs("div", { class: "affected", children: [
    /* @__PURE__ */ jsx("p", { children: /* @__PURE__ */ jsx("b", { children: t(operation === "drain" ? "action.moves" : "action.stays", { n: jobs.length }) }) }),
    jobs.length ? /* @__PURE__ */ jsxs("p", { children: [
      jobs.slice(0, most).map((j) => /* @__PURE__ */ jsxs("a", { class: "tag", href: address(["jobs", j.user, j.name]), target: "_blank", rel: "noreferrer", children: [
        j.user,
        "/",
        j.name
      ] }, j.uid)),
      jobs.length > most ? /* @__PURE__ */ jsxs("span", { class: "faint", children: [
        " ",
        t("action.andMore", { n: jobs.length - most })
      ] }) : null
    ] }) : null
  ] });
}
function Following({ name }) {
  const { value, error } = useRead(name, (signal) => call("GET /api/v3/actions/{action}", { path: { action: name }, signal }), (a) => a && isFinal(a) ? 0 : often);
  return error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value }) : value.value ? /* @__PURE__ */ jsx(Outcome, { a: value.value }) : /* @__PURE__ */ jsx(Loading, {});
}
function Requesting({ machine, operation, end, made }) {
  const dialog = useRef(null);
  const reason = useSignal("");
  const grace = useSignal(0);
  const field = useRef(null);
  const sent = useSignal(null);
  const { busy, error, act } = useAct();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    field.current.focus();
    return () => before?.focus?.();
  }, []);
  const body = { operation, machine, reason: reason.value.trim(), graceSeconds: grace.value || void 0 };
  const send = (dryRun) => act(async () => {
    sent.value = await call("POST /api/v3/actions", { body: { ...body, dryRun: dryRun || void 0 } });
    made?.();
  });
  const title = t(`action.ask.${operation}`, { machine });
  const idle = busy.value || !reason.value.trim() || sent.value !== null && !sent.value.dryRun;
  return /* @__PURE__ */ jsx("dialog", { ref: dialog, class: "request", onClose: end, onClick: (e) => e.target === dialog.current && end(), "aria-labelledby": "request", children: /* @__PURE__ */ jsxs(
    "form",
    {
      class: "dialog fields",
      onSubmit: (e) => {
        e.preventDefault();
        void send(false);
      },
      children: [
        /* @__PURE__ */ jsx("h2", { id: "request", children: title }),
        /* @__PURE__ */ jsx("p", { children: t(`action.more.${operation}`) }),
        operation === "uncordon" ? null : /* @__PURE__ */ jsx(Affected, { machine, operation }),
        /* @__PURE__ */ jsxs("label", { children: [
          t("action.reason"),
          /* @__PURE__ */ jsx("input", { ref: field, name: "reason", required: true, maxLength: 500, autocomplete: "off", value: reason.value, onInput: (e) => reason.value = e.currentTarget.value })
        ] }),
        /* @__PURE__ */ jsxs("label", { children: [
          t("action.grace"),
          /* @__PURE__ */ jsx("select", { name: "grace", value: String(grace.value), onChange: (e) => grace.value = Number(e.currentTarget.value), children: graces.map((s) => /* @__PURE__ */ jsx("option", { value: String(s), children: s ? t("action.graceOf", { time: duration(s * 1e3).replace(/ 0[hms]$/, "") }) : t("action.now") }, s)) })
        ] }),
        /* @__PURE__ */ jsxs("div", { class: "commands", children: [
          /* @__PURE__ */ jsxs(Copied, { text: command(machine, operation, body), children: [
            /* @__PURE__ */ jsx("code", { children: command(machine, operation, body) }),
            " ",
            /* @__PURE__ */ jsx(Icon, { name: "copy" })
          ] }),
          /* @__PURE__ */ jsxs(Copied, { text: curl("POST /api/v3/actions", { body }), children: [
            "curl ",
            /* @__PURE__ */ jsx(Icon, { name: "copy" })
          ] })
        ] }),
        error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value }) : null,
        sent.value ? /* @__PURE__ */ jsx(Following, { name: sent.value.name }, sent.value.name) : null,
        /* @__PURE__ */ jsxs("div", { class: "buttons", children: [
          /* @__PURE__ */ jsx("button", { type: "button", onClick: end, children: t(sent.value ? "close" : "cancel") }),
          /* @__PURE__ */ jsx("button", { type: "button", name: "dry", title: t("action.dryRunMore"), disabled: idle, onClick: () => void send(true), children: t("action.dryRun") }),
          /* @__PURE__ */ jsx("button", { type: "submit", class: operation === "drain" ? "primary danger" : "primary", disabled: idle, children: t(`action.${operation}`) })
        ] })
      ]
    }
  ) });
}
function Canceling({ a, end }) {
  const dialog = useRef(null);
  const reason = useSignal("");
  const { busy, error, act } = useAct();
  useEffect(() => dialog.current.showModal(), []);
  const send = () => act(async () => {
    await call("POST /api/v3/actions/{action}/cancel", { path: { action: a.name }, body: { reason: reason.value.trim() } });
    end();
  });
  return /* @__PURE__ */ jsx("dialog", { ref: dialog, class: "request", onClose: end, onClick: (e) => e.target === dialog.current && end(), "aria-labelledby": "cancel", children: /* @__PURE__ */ jsxs(
    "form",
    {
      class: "dialog fields",
      onSubmit: (e) => {
        e.preventDefault();
        void send();
      },
      children: [
        /* @__PURE__ */ jsx("h2", { id: "cancel", children: t("action.askCancel", { operation: operationName(a), target: a.machine ?? a.job ?? "" }) }),
        /* @__PURE__ */ jsx("p", { children: t(a.started ? "action.cancelBegun" : "action.cancelMore") }),
        /* @__PURE__ */ jsxs("label", { children: [
          t("action.reason"),
          /* @__PURE__ */ jsx("input", { name: "reason", required: true, maxLength: 200, autocomplete: "off", value: reason.value, onInput: (e) => reason.value = e.currentTarget.value })
        ] }),
        error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value }) : null,
        /* @__PURE__ */ jsxs("div", { class: "buttons", children: [
          /* @__PURE__ */ jsx("button", { type: "button", onClick: end, children: t("close") }),
          /* @__PURE__ */ jsx("button", { type: "submit", class: "primary danger", disabled: busy.value || !reason.value.trim(), children: t("action.cancel") })
        ] })
      ]
    }
  ) });
}
var shown = 5;
function MachineActions({ m, asked }) {
  const operation = useSignal(asked ?? null);
  const canceling = useSignal(null);
  const { value, error, again } = useRead(m.name, (signal) => call("GET /api/v3/actions", { query: { machine: m.name, limit: shown }, signal }), (page) => interval(page?.items));
  const ask = (o) => () => operation.value = o;
  useKeys({ c: ask(m.cordoned ? "uncordon" : "cordon"), d: ask("drain") });
  const all = value.value?.items ?? [];
  return /* @__PURE__ */ jsxs("section", { class: "requests", "aria-label": t("action.actions"), children: [
    /* @__PURE__ */ jsxs("p", { class: "buttons", children: [
      m.cordoned ? /* @__PURE__ */ jsxs("button", { type: "button", title: "c", onClick: ask("uncordon"), children: [
        /* @__PURE__ */ jsx(Icon, { name: "check" }),
        " ",
        t("action.uncordon")
      ] }) : /* @__PURE__ */ jsxs("button", { type: "button", title: "c", onClick: ask("cordon"), children: [
        /* @__PURE__ */ jsx(Icon, { name: "stop" }),
        " ",
        t("action.cordon")
      ] }),
      /* @__PURE__ */ jsxs("button", { type: "button", title: "d", onClick: ask("drain"), children: [
        /* @__PURE__ */ jsx(Icon, { name: "out" }),
        " ",
        t("action.drain")
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value, again }) : null,
    all.length ? /* @__PURE__ */ jsxs(Fragment, { children: [
      /* @__PURE__ */ jsx("ul", { class: "steps", children: all.map((a) => /* @__PURE__ */ jsxs("li", { children: [
        /* @__PURE__ */ jsxs("p", { children: [
          /* @__PURE__ */ jsx("b", { children: operationName(a) }),
          " ",
          /* @__PURE__ */ jsx(Phase, { a }),
          " ",
          /* @__PURE__ */ jsx("span", { class: "grow" }),
          /* @__PURE__ */ jsxs("span", { class: "faint", children: [
            requester(a),
            " · ",
            /* @__PURE__ */ jsx(Ago, { time: a.created })
          ] })
        ] }),
        /* @__PURE__ */ jsx("p", { children: a.reason }),
        a.message ? /* @__PURE__ */ jsx("p", { class: "faint", children: a.message }) : null,
        isCancelable(a) ? /* @__PURE__ */ jsx("button", { type: "button", class: "link", onClick: () => canceling.value = a, children: t("action.cancel") }) : null
      ] }, a.name)) }),
      /* @__PURE__ */ jsx("p", { children: /* @__PURE__ */ jsx("a", { href: address(["admin", "actions"], { machine: m.name }), children: t("action.allOf") }) })
    ] }) : null,
    operation.value ? /* @__PURE__ */ jsx(Requesting, { machine: m.name, operation: operation.value, end: () => operation.value = null, made: again }, operation.value) : null,
    canceling.value ? /* @__PURE__ */ jsx(
      Canceling,
      {
        a: canceling.value,
        end: () => {
          canceling.value = null;
          again();
        }
      }
    ) : null
  ] });
}

export {
  isFinal,
  isCancelable,
  interval,
  operationName,
  requester,
  Phase,
  Outcome,
  Requesting,
  Canceling,
  MachineActions
};
