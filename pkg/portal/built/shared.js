// pkg/portal/web/src/route.ts
import { signal } from "./library.js";
var base = new URL("../../", import.meta.url).pathname;
function read() {
  const below = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : "";
  return { path: below.split("/").filter(Boolean).map(decode), query: new URLSearchParams(location.search) };
}
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
var place = signal(read());
function address(path, query = {}) {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v) q.set(k, v);
  const text = q.toString();
  return base + path.map(encodeURIComponent).join("/") + (text ? "?" + text : "");
}
function go(to, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  place.value = read();
  if (!replace) scrollTo(0, 0);
}
function setQuery(change) {
  const q = Object.fromEntries(place.value.query);
  go(address(place.value.path, { ...q, ...change }), true);
}
function start() {
  addEventListener("popstate", () => place.value = read());
  document.addEventListener("click", (e) => {
    const a = e.target.closest?.("a");
    if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey || a.target || a.hasAttribute("download") || a.dataset.leave !== void 0) return;
    const to = new URL(a.href);
    if (to.origin !== location.origin || !to.pathname.startsWith(base)) return;
    e.preventDefault();
    go(to.pathname + to.search);
  });
}

// pkg/portal/web/src/text.ts
import { signal as signal2 } from "./library.js";
var en = {
  home: "Home",
  jobs: "Jobs",
  submit: "Submit",
  newJob: "New job",
  "view.document": "Document",
  "view.form": "Form",
  view: "View of the job file",
  signOut: "Sign out",
  theme: "Theme",
  "theme.auto": "Like the system",
  "theme.light": "Light",
  "theme.dark": "Dark",
  language: "Language",
  shortcuts: "Keyboard shortcuts",
  close: "Close",
  cancel: "Cancel",
  copied: "Copied",
  copy: "Copy",
  noAnswer: "The server doesn't answer.",
  cut: "The connection was lost.",
  status: "The server answered with status {status}.",
  requestId: "Request {id}",
  again: "Try again",
  lost: "Not live: {why} Trying again…",
  live: "Live",
  pages: "Other pages",
  notFound: "This page doesn't exist.",
  state: "State",
  name: "Name",
  owner: "Owner",
  vc: "Virtual cluster",
  tasks: "Tasks",
  gpus: "GPUs",
  submitted: "Submitted",
  duration: "Duration",
  retries: "Retries",
  priority: "Priority",
  tags: "Tags",
  "state.waiting": "Waiting",
  "state.queued": "Queued",
  "state.starting": "Starting",
  "state.barrier": "Waiting for tasks",
  "state.running": "Running",
  "state.stopping": "Stopping",
  "state.retry": "Retry",
  "state.succeeded": "Succeeded",
  "state.failed": "Failed",
  "state.stopped": "Stopped",
  "state.deleting": "Deleting",
  "state.deleted": "Deleted",
  "state.active": "Active",
  "state.all": "All",
  position: "#{n} in the queue",
  deletedToo: "deleted",
  search: "Search jobs",
  mine: "Mine",
  everyone: "Everyone",
  anyVC: "All virtual clusters",
  csv: "CSV",
  csvMore: "Download the filtered list as CSV",
  older: "Show older jobs",
  noJobs: "No jobs yet.",
  noJobsHint: "Submit a job file, or copy a job of a colleague.",
  noMatch: "No job matches these filters.",
  clearFilters: "Clear filters",
  loading: "Loading…",
  shown: "{n} jobs",
  shownMore: "{n} jobs, more below",
  overview: "Tasks",
  logs: "Logs",
  events: "Events",
  config: "Configuration",
  attempts: "Attempts",
  stop: "Stop",
  retry: "Run again",
  clone: "Clone",
  remove: "Delete",
  more: "More",
  copyPaictl: "Copy as paictl",
  copyCurl: "Copy as curl",
  copyLink: "Copy link",
  copyName: "Copy name",
  "ask.stop": "Stop {job}?",
  "ask.stop.more": "Its tasks end, and its machines become free. You can run it again later.",
  "ask.retry": "Run {job} again?",
  "ask.retry.more": "A new job of the same name starts from the beginning, as it was submitted.",
  "ask.remove": "Delete {job}?",
  "ask.remove.more": "Its tasks end at once. The history keeps the job, with its logs.",
  "done.stop": "The job is being stopped.",
  "done.retry": "The job runs again.",
  "done.remove": "The job is deleted.",
  whatToDo: "What to do",
  details: "Details",
  lastLines: "Last lines of the log",
  role: "Role",
  task: "Task",
  machine: "Machine",
  "machine.operations": "Operations on {name}",
  "machine.cordon": "Cordon…",
  "machine.uncordon": "Uncordon…",
  "machine.drain": "Drain…",
  cordonedBy: "Cordoned by {name}",
  exit: "Exit",
  started: "Started",
  attempt: "Attempt",
  address: "Address",
  noTasks: "The job has no tasks yet.",
  filterTasks: "Filter tasks",
  moreTasks: "Show {n} more",
  allTasks: "All tasks",
  image: "Image",
  result: "Result",
  ended: "Ended",
  noAttempts: "No attempt has begun yet.",
  noEvents: "There are no events.",
  noConfig: "The job wasn't submitted as a job file, or you may not see the file.",
  time: "Time",
  reason: "Reason",
  message: "Message",
  object: "Object",
  download: "Download",
  masked: "Secrets are masked.",
  find: "Find",
  matches: "{at} of {n}",
  noMatches: "no match",
  follow: "Follow",
  wrap: "Wrap lines",
  times: "Times",
  previous: "Attempt before",
  fromStart: "Load from the start",
  newest: "Newest lines",
  emptyLog: "No lines yet.",
  logEnded: "End of the log",
  logFollows: "New lines appear as they are written.",
  tooLong: "Only the last {n} lines are kept here. Download the log for all of it.",
  showingLast: "The last {n} lines of each task.",
  next: "Next",
  before: "Previous",
  lines: "{n} lines",
  findInLog: "Find in the whole log",
  regexp: "Regular expression",
  matchesSoFar: "{n} matches",
  toStart: "Start",
  toEnd: "End",
  toTime: "Go to (UTC)",
  linkToLine: "Link to this line",
  wholeLine: "Show all of this line ({n} KiB)",
  logOf: "Attempt {n} · {size}",
  logDropped: "{size} of the log before this line were dropped: the newest {limit} of a task's log are kept.",
  logGaps: "Some lines may be missing: the machine removed them while log-manager didn't run.",
  newerAttempt: "A new attempt of this task has begun.",
  openIt: "Open its log",
  noPositions: "No machine keeps this log by position. The search looks at the lines on this page.",
  linkWithoutPositions: "The line of this link can't be shown: no machine keeps this log by position.",
  hello: "Hello, {name}",
  myJobs: "My jobs",
  allMine: "All my jobs",
  vcs: "Virtual clusters",
  free: "{n} free",
  ofTotal: "of {n} GPUs",
  ofCPU: "of {n} CPU cells",
  largest: "The largest piece that is free has {n} GPUs.",
  largestNone: "No GPU is free now.",
  waitingJobs: "{n} waiting",
  nobodyWaits: "Nobody waits",
  broken: "{n} out of order",
  opportunistic: "{n} lent to others",
  usage: "{used} in use, {free} free, {bad} out of order",
  noVCs: "No virtual cluster is granted to you. Ask an administrator for a group that has one.",
  activeCount: "{n} active",
  jobFile: "Job file",
  check: "Check",
  checking: "Checking…",
  fine: "The server accepts this job.",
  warnings: "The server accepts this job, with remarks:",
  refused: "The server doesn't accept this job:",
  line: "Line {n}",
  submitJob: "Submit job",
  submitting: "Submitting…",
  openFile: "Open a file",
  example: "Start from the example",
  cloneOf: "A copy of {job}",
  clonedFrom: "Cloned from",
  clonedFromHidden: "Cloned from a job that you don't see.",
  clonedFromReplaced: "Another job has that name now.",
  changes: "Changes",
  noChanges: "Both jobs have the same job file.",
  unchangedLines: "unchanged lines: {n}",
  enterSecrets: "Secrets of the original are masked (******). Enter them again before you submit.",
  willRequest: "Virtual cluster {vc} · tasks: {tasks} · GPUs: {gpus}",
  emptyFile: "Write a job file, open one, or start from the example.",
  yourVCs: "Where it can run",
  "outlook.starts": "Starts now.",
  "outlook.startsOn": "Starts now on {n} machines{machines}.",
  "outlook.startsOnOne": "Starts now on one machine{machines}.",
  "outlook.atLeast": "At least {starting} of {tasks} tasks start now.",
  "outlook.some": "{starting} of {tasks} tasks start now. The next ones:",
  "outlook.preempts": "Starts when gangs that it preempts have stopped: {n}.",
  "outlook.queue": "Would be number {position} of {of} in the queue of {vc}: {why}",
  "outlook.waits": "Would wait: {why}",
  "outlook.never": "Can never start: {why}",
  "outlook.unknown": "It isn't known whether it would start now: {why}",
  "outlook.after": "It waits for these jobs first: {jobs}.",
  "outlook.largest": "The largest job of this shape that starts now: {tasks} × {n} GPUs.",
  "outlook.largestCPU": "The largest job of this shape that starts now: {tasks} × {n} CPU cells.",
  "outlook.hours": "Costs up to {hours} GPU hours for each run, with {gpus} GPUs until its time limit.",
  "outlook.hourly": "Costs {gpus} GPU hours for each hour that it runs.",
  draftRestored: "This is what you wrote here before.",
  draftDiscard: "Start again without it",
  secretsOfJob: "Secrets",
  secretsHint: "They are sent with the job. This browser doesn't store them.",
  secretInFile: "as in the file",
  secretMissing: "not entered yet",
  storagesInFile: "The file lists its storages in a way that only the editor can change.",
  codeFolder: "Code",
  codeHint: "A folder whose files are in the tasks' working directory when they start. All files are sent, apart from .git.",
  codeChoose: "Choose a folder",
  codePacking: "Packing…",
  codeRemove: "Send no folder",
  codeFiles: "{n} files, packed {kib} KiB",
  codeTooLarge: "The folder has more than 50,000 files or 256 MiB. Keep data and models on storages.",
  "key.search": "Search",
  "key.next": "Next row",
  "key.prev": "Previous row",
  "key.open": "Open the row",
  "key.home": "Home",
  "key.jobs": "Jobs",
  "key.submit": "New job",
  "key.tabs": "Tabs of a job",
  "key.send": "Submit the job file",
  "key.help": "This list",
  now: "just now",
  ago: "{time} ago",
  in: "in {time}",
  machines: "Machines",
  queue: "Queue",
  ofMachines: "of {n} machines ready",
  ofGPUs: "of {n} GPUs used",
  searchMachines: "Search machines",
  anySKU: "All types",
  sku: "Type",
  "show.all": "All",
  "show.free": "With free GPUs",
  "show.troubled": "With problems",
  "mapBy.use": "Use",
  "mapBy.owner": "Person",
  "mapBy.vc": "Virtual cluster",
  "mapBy.health": "Health",
  mapBy: "Colours show",
  mapLabel: "Map of the GPUs of {n} machines. Move with the arrow keys, open a machine with Enter.",
  mapFree: "Free",
  mapSomeone: "Held by someone",
  mapOthers: "{n} others",
  mapNoUse: "Held, use unknown",
  mapDown: "Not available",
  mapBroken: "Broken",
  mapOpportunistic: "opportunistic",
  mapUse: "use {n} %",
  mapMemory: "memory {used} of {of} GiB",
  wall: "Wall",
  wallMore: "Show only the map, for a screen on a wall",
  wallEnd: "Close",
  "gpu.healthy": "Healthy",
  "gpu.ignored": "Sick, used anyway",
  "gpu.sick": "Sick",
  "gpu.missing": "Missing",
  "gpu.unknown": "Unknown",
  "machine.Ready": "Ready",
  "machine.NotReady": "Not ready",
  "machine.Unknown": "Silent",
  "machine.Outside": "Not in the cluster",
  "machine.Unlisted": "Not configured",
  cordoned: "cordoned",
  noGPUs: "no GPUs",
  noMachines: "The cluster has no machines yet.",
  noMachineMatch: "No machine matches these filters.",
  machinesShown: "{n} machines",
  machinesMore: "{n} machines, of which the table has {most}; the map has all",
  cpuUse: "CPU",
  memoryUse: "Memory",
  coresOf: "{used} of {of} cores requested",
  gibOf: "{used} of {of} GiB requested",
  pods: "Pods",
  sinceTime: "Since",
  roles: "Roles",
  machineAddress: "Address",
  driver: "Driver",
  kernel: "Kernel",
  os: "System",
  health: "Health",
  holder: "Held by",
  useNow: "Use",
  sourceIs: "{name}: {state}.",
  "source.api": "Kubernetes",
  "source.jobs": "Jobs",
  "source.scheduler": "Scheduler",
  "source.services": "Services",
  "source.prometheus": "Prometheus",
  "source.alerts": "Alertmanager",
  "sourceState.loading": "is still loading",
  "sourceState.stale": "doesn't answer; these values are old",
  "sourceState.absent": "not there",
  "sourceState.failed": "doesn't answer",
  gpuMap: "GPU map",
  noSuchVC: "You can't use a virtual cluster called {name}.",
  wants: "Wants",
  wantsGPUs: "{n} GPUs",
  wantsShare: "{n} shares of GPUs",
  wantsCPU: "{n} cores",
  waitsSince: "Since",
  waitsFor: "Why",
  "key.machines": "Machines",
  "key.machine": "Cordon or uncordon, and drain the open machine, for administrators",
  gpuModel: "GPU model",
  templates: "Templates",
  newTemplate: "New template",
  searchTemplates: "Search templates",
  "view.all": "All",
  "view.mine": "Mine",
  "view.shared": "Shared with me",
  "view.official": "Official",
  "view.starred": "Starred",
  "order.stars": "Most stars",
  "order.uses": "Most used",
  "order.updated": "Latest change",
  "order.name": "Name",
  order: "Order",
  labels: "Tags",
  anyLabel: "All tags",
  star: "Star",
  unstar: "Remove your star",
  official: "Official",
  onlyAuthor: "Only the author",
  noSummary: "No summary",
  usedTimes: "used {n}×",
  noTemplates: "No templates yet.",
  noTemplatesHint: "Save a job file as a template: in the menu of a job or of the page Submit, or with New template.",
  noTemplateMatch: "No template matches these filters.",
  author: "Author",
  sharedWith: "Shared with",
  uses: "Uses",
  version: "Version",
  changedAt: "Changed",
  createdAt: "Created",
  data: "Data",
  use: "Use",
  useHint: "Use opens the job file with these values on the page Submit, where the server checks it.",
  copySubmit: "Copy the submission as paictl",
  edit: "Edit",
  save: "Save",
  saveTemplate: "Save as template",
  builtIn: "Built in",
  copyTemplate: "Make a copy",
  copyOf: "A copy of {name}",
  editTemplate: "Edit {name}",
  templateOf: "A template of {job}",
  templateMasked: "Secrets of this template are masked (******). Enter your own before you submit.",
  templateSecrets: "The server masks values below secrets, and passwords of registries. Values of parameters aren't secret.",
  "ask.removeTemplate": "Remove the template {name}?",
  "ask.removeTemplate.more": "It is removed for everyone, with its stars. Jobs that were submitted from it stay.",
  "done.removeTemplate": "The template is removed.",
  "done.keepTemplate": "The template is saved.",
  parameters: "Parameters",
  summary: "Summary",
  description: "Description",
  categories: "Categories",
  commas: "Separate several by commas.",
  "share.private": "Only me",
  "share.groups": "These groups",
  "share.public": "Everyone",
  "key.templates": "Templates",
  usagePage: "Usage",
  timeSpan: "Time",
  lastDays: "{n} days",
  thisMonth: "This month",
  usageOf: "Usage of",
  usageOfMe: "My usage",
  usageOfAll: "The whole cluster",
  usageOfVC: "Virtual cluster {vc}",
  rowsBy: "Rows",
  "by.vc": "Virtual cluster",
  "by.user": "Person",
  "by.type": "GPU model",
  "by.day": "Day",
  gpuHours: "GPU hours",
  guaranteed: "Guaranteed",
  opportunisticJobs: "Opportunistic",
  preempted: "Lost to preemption",
  failedAttempts: "Failed",
  share: "Share",
  shareMore: "The part of the virtual cluster's GPUs that jobs with a guarantee held",
  unknown: "Unknown",
  noUsage: "No GPU was held in this time.",
  noUsageHint: "Choose a longer time, or submit a job that requests GPUs.",
  usageHint: "GPU hours count from when a task gets its machine until it ends, used or not. Lost and failed hours are part of the guaranteed and opportunistic ones. Days are UTC.",
  hoursADay: "top: {n} GPU hours a day",
  chartOf: "{n} GPU hours in {days} days",
  "key.usage": "Usage",
  profile: "Profile",
  account: "Account",
  userName: "User name",
  administrator: "Administrator",
  groups: "Groups",
  noGroups: "None: ask an administrator to add you to a group.",
  storages: "Storages",
  noStorages: "None: a group can grant them.",
  identities: "Signs in with",
  lastSignIn: "Last sign-in",
  everyVC: "All virtual clusters.",
  "grant.submit": "submit up to priority {priority}",
  "grant.seeJobs": "see the jobs of others",
  "grant.hostNetwork": "use the machines' network",
  nameAndMail: "Name, e-mail and defaults",
  defaultVC: "Default virtual cluster",
  defaultVCHint: "Jobs whose files name no virtual cluster run there.",
  displayName: "Display name",
  email: "E-mail",
  "done.profile": "Your profile is saved.",
  sshKeys: "SSH keys",
  noKeys: "No keys yet. Paste the public key of your machine, from a file like ~/.ssh/id_ed25519.pub.",
  publicKey: "Public key",
  title: "Title",
  untitled: "Without a title",
  addKey: "Add key",
  "done.addKey": "The key is added.",
  "key.private": "This is a private key. Don't give it to anyone. Paste the public key, from the file that ends in .pub.",
  "key.lines": "Paste one key, on one line.",
  "key.type": "A public key begins with its type, such as ssh-ed25519 or ssh-rsa. Paste the whole line of the .pub file.",
  "key.cut": "The key is incomplete. Copy the whole line of the .pub file again.",
  "key.known": "You have this key already.",
  "ask.removeKey": "Remove the key {name}?",
  "ask.removeKey.more": "It is removed from your profile. Jobs that have it in their job file keep it.",
  password: "Password",
  oldPassword: "Current password",
  newPassword: "New password",
  newPasswordAgain: "New password again",
  passwordsDiffer: "The new passwords differ.",
  passwordEnds: "All your sessions end, and you sign in again. Tokens stay valid.",
  changePassword: "Change password",
  tokens: "Sessions and tokens",
  tokensHint: "A program signs in with a token: set it as PAICTL_TOKEN for paictl, or send it as Authorization: Bearer.",
  noTokens: "No tokens yet. Create one for a program that runs without you.",
  tokenOnce: "The token {name} is shown only now. Copy it, and keep it like a password.",
  newToken: "New token",
  createToken: "Create token",
  label: "Label",
  scopes: "Scopes",
  "scope.read": "See jobs, usage, virtual clusters and storages",
  "scope.submit": "Submit jobs, and stop, enter and delete yours",
  "scope.admin": "See machines and pods as an administrator",
  "scope.secrets": "Read credentials of storages, and keys of jobs",
  validFor: "Valid for",
  untilRevoked: "Until it is revoked",
  lastUsed: "Last used",
  expires: "Ends",
  never: "Never",
  client: "From",
  thisSession: "this session",
  "kind.session": "Session of paictl",
  "kind.browser": "Browser",
  "kind.application": "Token",
  revoke: "Revoke",
  "ask.revoke": "Revoke {name}?",
  "ask.revoke.more": "Programs that use it are signed out at once.",
  "ask.revoke.own": "This is the session of this page: you are signed out at once.",
  "done.revoke": "It is revoked.",
  admin: "Administration",
  editorHelp: "Ctrl Space completes. Escape and then Tab leaves the editor.",
  plainEditor: "The editor couldn't be loaded. Load the page again to try once more; this field works without it.",
  "edit.replace": "Replace",
  "edit.replaceAll": "Replace all",
  "edit.all": "All",
  "edit.case": "Match case",
  "edit.regexp": "Regular expression",
  "edit.word": "By word",
  "edit.line": "Go to line",
  "edit.go": "Go",
  "edit.completions": "Completions",
  "edit.noFindings": "No findings",
  "edit.control": "Control character",
  "edit.folded": "Folded lines",
  "edit.fold": "Fold line",
  "edit.unfold": "Unfold line",
  shell: "Shell",
  openShell: "Open a shell in {task}",
  "shell.start": "Open a shell",
  "shell.audited": "The audit records who opens a shell in a task.",
  "shell.opening": "Connecting…",
  "shell.open": "Connected. Ctrl F6 leaves the terminal.",
  "shell.ended": "The shell ended with status {code}.",
  "shell.cut": "The connection ended. The task may have ended, or the server may have restarted.",
  "shell.again": "Open another shell",
  "shell.none": "No task of the job runs now. A shell opens in a running task.",
  "shell.failed": "The terminal couldn't be loaded. Load the page again.",
  "shell.skipped": "{n} bytes of output were skipped, because they came faster than they can be drawn.",
  "shell.keys": "Keys",
  paste: "Paste",
  pasteKeys: "The browser doesn't let the page read the clipboard. Press Ctrl Shift V in the terminal.",
  backToJob: "Back to the job",
  "key.complete": "Complete in the editor",
  "key.leave": "Leave the terminal",
  palette: "Find pages, jobs and templates",
  paletteHint: "Go to a page, a job or a template…",
  nothingFound: "Nothing found.",
  "key.palette": "Find anything",
  notify: "Notify me when my jobs end",
  notifyRefused: "The browser doesn't allow notifications of this page.",
  addTag: "Add a tag",
  removeTag: "Remove the tag {tag}",
  scale: "Change the number of tasks",
  scaleMore: "A larger number starts more tasks, which wait for free GPUs. A smaller one ends the tasks with the highest numbers.",
  scaled: "{role}: {before} → {tasks} tasks",
  files: "Files",
  refresh: "Refresh",
  replace: "Replace",
  "files.path": "Path in the task",
  "files.upload": "Upload",
  "files.whole": "Folder",
  "files.wholeMore": "Download the folder as a gzipped tar",
  "files.copyOut": "Copy the command that copies this out",
  "files.copyIn": "Copy the command that copies a file in",
  "files.sending": "Sending {name}: {percent} %",
  "files.sent": "{name} is in the task.",
  "files.stopped": "The upload was stopped. The task may have a part of the file.",
  "files.replace": "Replace files of the task?",
  "files.size": "Size",
  "files.modified": "Modified",
  "files.empty": "The folder is empty. Drop files here to send them into the task.",
  "files.more": "The folder has more entries. Open a shell to see all of them.",
  metrics: "Metrics",
  overTime: "Use over time",
  findings: "What the figures show",
  asTable: "Figures as a table",
  metric: "Metric",
  metricOf: "Of",
  limit: "Limit",
  chartOver: "{title} over time. The table below has the figures.",
  chartFailed: "The charts couldn't be loaded. Load the page again.",
  foldedOf: "{name} of {n}",
  manyThings: "all",
  "span.1h": "1 hour",
  "span.6h": "6 hours",
  "span.1d": "1 day",
  "span.7d": "7 days",
  "span.30d": "30 days",
  "span.all": "All",
  "metric.gpu-use": "GPU use",
  "metric.gpu-memory": "GPU memory",
  "metric.gpu-power": "GPU power",
  "metric.gpu-slowed": "GPU slowed down by heat or its power supply (0 or 1)",
  "metric.gpu-temperature": "GPU temperature",
  "metric.cpu": "Processors",
  "metric.memory": "Memory",
  "metric.network-in": "Network, received",
  "metric.network-out": "Network, sent",
  "metric.disk-read": "Disks, read",
  "metric.disk-write": "Disks, written",
  "metric.disk-busy": "Busiest disk",
  "metric.filesystems": "File systems",
  "metric.gpus": "GPUs",
  "metric.held-use": "Use of the GPUs that its tasks hold",
  "metric.cpu-cells": "CPU cells",
  "metric.waiting": "Waiting",
  "metric.oldest": "The oldest has waited",
  "series.lowest": "Lowest",
  "series.mean": "Mean",
  "series.highest": "Highest",
  "series.guaranteed": "Guaranteed",
  "series.used": "Used of these",
  "series.opportunistic": "Opportunistic",
  "series.bad": "Out of order",
  "series.jobs": "Jobs",
  "series.tasks": "Tasks",
  "series.all": "All",
  "series.the busiest": "The busiest"
};
var zh = {
  home: "首页",
  jobs: "作业",
  submit: "提交",
  newJob: "新建作业",
  "view.document": "文档",
  "view.form": "表单",
  view: "作业文件的视图",
  signOut: "退出登录",
  theme: "主题",
  "theme.auto": "跟随系统",
  "theme.light": "浅色",
  "theme.dark": "深色",
  language: "语言",
  shortcuts: "键盘快捷键",
  close: "关闭",
  cancel: "取消",
  copied: "已复制",
  copy: "复制",
  noAnswer: "服务器没有响应。",
  cut: "连接已断开。",
  status: "服务器返回状态码 {status}。",
  requestId: "请求 ID {id}",
  again: "重试",
  lost: "实时更新中断：{why} 正在重试…",
  live: "实时",
  pages: "其他页面",
  notFound: "页面不存在。",
  state: "状态",
  name: "名称",
  owner: "所有者",
  vc: "虚拟集群",
  tasks: "任务",
  gpus: "GPU",
  submitted: "提交时间",
  duration: "时长",
  retries: "重试",
  priority: "优先级",
  tags: "标签",
  "state.waiting": "等待中",
  "state.queued": "排队中",
  "state.starting": "启动中",
  "state.barrier": "等待其他任务",
  "state.running": "运行中",
  "state.stopping": "停止中",
  "state.retry": "等待重试",
  "state.succeeded": "成功",
  "state.failed": "失败",
  "state.stopped": "已停止",
  "state.deleting": "删除中",
  "state.deleted": "已删除",
  "state.active": "进行中",
  "state.all": "全部",
  position: "队列第 {n} 位",
  deletedToo: "已删除",
  search: "搜索作业",
  mine: "我的",
  everyone: "所有人",
  anyVC: "所有虚拟集群",
  csv: "CSV",
  csvMore: "将筛选结果下载为 CSV",
  older: "显示更早的作业",
  noJobs: "还没有作业。",
  noJobsHint: "可以提交作业文件，或克隆同事的作业。",
  noMatch: "没有符合筛选条件的作业。",
  clearFilters: "清除筛选",
  loading: "加载中…",
  shown: "{n} 个作业",
  shownMore: "{n} 个作业，下方还有更多",
  overview: "任务",
  logs: "日志",
  events: "事件",
  config: "配置",
  attempts: "历次尝试",
  stop: "停止",
  retry: "重新运行",
  clone: "克隆",
  remove: "删除",
  more: "更多",
  copyPaictl: "复制为 paictl 命令",
  copyCurl: "复制为 curl 命令",
  copyLink: "复制链接",
  copyName: "复制名称",
  "ask.stop": "停止 {job}？",
  "ask.stop.more": "作业的任务会结束，占用的机器会释放。之后可以重新运行。",
  "ask.retry": "重新运行 {job}？",
  "ask.retry.more": "将按提交时的内容新建一个同名作业，从头开始运行。",
  "ask.remove": "删除 {job}？",
  "ask.remove.more": "作业的任务会立即结束。历史记录中会保留该作业及其日志。",
  "done.stop": "正在停止该作业。",
  "done.retry": "作业已重新运行。",
  "done.remove": "作业已删除。",
  whatToDo: "处理建议",
  details: "详情",
  lastLines: "日志的最后几行",
  role: "角色",
  task: "任务",
  machine: "机器",
  "machine.operations": "{name} 的操作",
  "machine.cordon": "停止调度…",
  "machine.uncordon": "恢复调度…",
  "machine.drain": "排空…",
  cordonedBy: "由 {name} 停止调度",
  exit: "退出状态",
  started: "开始时间",
  attempt: "尝试",
  address: "地址",
  noTasks: "该作业还没有任务。",
  filterTasks: "筛选任务",
  moreTasks: "再显示 {n} 个",
  allTasks: "所有任务",
  image: "镜像",
  result: "结果",
  ended: "结束时间",
  noAttempts: "还没有任何尝试。",
  noEvents: "没有事件。",
  noConfig: "该作业不是通过作业文件提交的，或者您无权查看该文件。",
  time: "时间",
  reason: "原因",
  message: "消息",
  object: "对象",
  download: "下载",
  masked: "机密已隐藏。",
  find: "查找",
  matches: "第 {at} 处，共 {n} 处",
  noMatches: "无匹配",
  follow: "跟踪",
  wrap: "自动换行",
  times: "时间戳",
  previous: "上一次尝试",
  fromStart: "从头加载",
  newest: "最新日志",
  emptyLog: "还没有日志。",
  logEnded: "日志结束",
  logFollows: "新日志会实时显示。",
  tooLong: "此处只保留最后 {n} 行，完整日志请下载查看。",
  showingLast: "显示每个任务的最后 {n} 行。",
  next: "下一个",
  before: "上一个",
  lines: "{n} 行",
  findInLog: "在整个日志中查找",
  regexp: "正则表达式",
  matchesSoFar: "已找到 {n} 处",
  toStart: "开头",
  toEnd: "末尾",
  toTime: "跳转到（UTC）",
  linkToLine: "此行的链接",
  wholeLine: "显示整行（{n} KiB）",
  logOf: "尝试 {n} · {size}",
  logDropped: "此行之前有 {size} 日志已丢弃：每个任务只保留最新的 {limit} 日志。",
  logGaps: "日志可能不完整：log-manager 停止运行期间，机器删除了部分日志行。",
  newerAttempt: "此任务已开始新的尝试。",
  openIt: "查看日志",
  noPositions: "没有机器按位置保存此日志，只能在本页显示的行中查找。",
  linkWithoutPositions: "无法显示链接所指的行：没有机器按位置保存此日志。",
  hello: "您好，{name}",
  myJobs: "我的作业",
  allMine: "我的全部作业",
  vcs: "虚拟集群",
  free: "空闲 {n}",
  ofTotal: "/ {n} 个 GPU",
  ofCPU: "/ {n} 个 CPU 单元",
  largest: "最大的空闲单元有 {n} 个 GPU。",
  largestNone: "目前没有空闲的 GPU。",
  waitingJobs: "{n} 个等待中",
  nobodyWaits: "没有等待的作业",
  broken: "{n} 个故障",
  opportunistic: "{n} 个已借出",
  usage: "{used} 个使用中，{free} 个空闲，{bad} 个故障",
  noVCs: "您还没有可用的虚拟集群。请联系管理员，加入拥有虚拟集群的用户组。",
  activeCount: "{n} 个进行中",
  jobFile: "作业文件",
  check: "检查",
  checking: "检查中…",
  fine: "服务器接受此作业。",
  warnings: "服务器接受此作业，但有以下提示：",
  refused: "服务器不接受此作业：",
  line: "第 {n} 行",
  submitJob: "提交作业",
  submitting: "提交中…",
  openFile: "打开文件",
  example: "从示例开始",
  cloneOf: "{job} 的副本",
  clonedFrom: "克隆自",
  clonedFromHidden: "克隆自一个您看不到的作业。",
  clonedFromReplaced: "该名称现在属于另一个作业。",
  changes: "更改",
  noChanges: "两个作业的作业文件相同。",
  unchangedLines: "未更改 {n} 行",
  enterSecrets: "原作业中的机密已隐藏（******）。提交前请重新填写。",
  willRequest: "虚拟集群 {vc} · 任务：{tasks} · GPU：{gpus}",
  emptyFile: "请编写或打开作业文件，也可以从示例开始。",
  yourVCs: "可以在哪里运行",
  "outlook.starts": "可以立即启动。",
  "outlook.startsOn": "可以立即在 {n} 台机器上启动{machines}。",
  "outlook.startsOnOne": "可以立即在一台机器上启动{machines}。",
  "outlook.atLeast": "{tasks} 个任务中至少有 {starting} 个可以立即启动。",
  "outlook.some": "{tasks} 个任务中有 {starting} 个可以立即启动。其余任务：",
  "outlook.preempts": "需要抢占 {n} 个任务组，待其停止后启动。",
  "outlook.queue": "将在 {vc} 的队列中排第 {position} 位（共 {of} 个）：{why}",
  "outlook.waits": "需要等待：{why}",
  "outlook.never": "永远无法启动：{why}",
  "outlook.unknown": "无法判断能否立即启动：{why}",
  "outlook.after": "将先等待以下作业：{jobs}。",
  "outlook.largest": "同类作业当前可立即启动的最大规模：{tasks} × {n} 个 GPU。",
  "outlook.largestCPU": "同类作业当前可立即启动的最大规模：{tasks} × {n} 个 CPU 单元。",
  "outlook.hours": "每次运行最多消耗 {hours} GPU 小时（{gpus} 个 GPU，运行到时间上限）。",
  "outlook.hourly": "每运行一小时消耗 {gpus} GPU 小时。",
  draftRestored: "已恢复您之前在此编写的内容。",
  draftDiscard: "放弃并重新开始",
  secretsOfJob: "机密",
  secretsHint: "机密随作业一起发送，浏览器不会保存。",
  secretInFile: "使用文件中的值",
  secretMissing: "尚未填写",
  storagesInFile: "此文件中的存储列表只能在编辑器中修改。",
  codeFolder: "代码",
  codeHint: "任务启动时，该文件夹中的文件已在任务的工作目录中。除 .git 外的所有文件都会上传。",
  codeChoose: "选择文件夹",
  codePacking: "打包中…",
  codeRemove: "不上传文件夹",
  codeFiles: "{n} 个文件，打包后 {kib} KiB",
  codeTooLarge: "文件夹超过 50,000 个文件或 256 MiB。请将数据和模型放到存储中。",
  "key.search": "搜索",
  "key.next": "下一行",
  "key.prev": "上一行",
  "key.open": "打开所选行",
  "key.home": "首页",
  "key.jobs": "作业",
  "key.submit": "新建作业",
  "key.tabs": "作业的标签页",
  "key.send": "提交作业文件",
  "key.help": "显示此列表",
  now: "刚刚",
  ago: "{time}前",
  in: "{time}后",
  machines: "机器",
  queue: "队列",
  ofMachines: "/ {n} 台机器就绪",
  ofGPUs: "/ {n} 个 GPU 已用",
  searchMachines: "搜索机器",
  anySKU: "所有类型",
  sku: "类型",
  "show.all": "全部",
  "show.free": "有空闲 GPU",
  "show.troubled": "有问题",
  "mapBy.use": "利用率",
  "mapBy.owner": "用户",
  "mapBy.vc": "虚拟集群",
  "mapBy.health": "健康状况",
  mapBy: "颜色表示",
  mapLabel: "{n} 台机器的 GPU 分布图。用方向键移动，按 Enter 打开机器。",
  mapFree: "空闲",
  mapSomeone: "已占用",
  mapOthers: "其他 {n} 个",
  mapNoUse: "已占用，利用率未知",
  mapDown: "不可用",
  mapBroken: "故障",
  mapOpportunistic: "机会型",
  mapUse: "利用率 {n}%",
  mapMemory: "显存 {used} / {of} GiB",
  wall: "大屏",
  wallMore: "只显示 GPU 分布图，用于大屏展示",
  wallEnd: "关闭",
  "gpu.healthy": "正常",
  "gpu.ignored": "有故障，仍在使用",
  "gpu.sick": "有故障",
  "gpu.missing": "缺失",
  "gpu.unknown": "未知",
  "machine.Ready": "就绪",
  "machine.NotReady": "未就绪",
  "machine.Unknown": "无响应",
  "machine.Outside": "不在集群中",
  "machine.Unlisted": "未配置",
  cordoned: "已停止调度",
  noGPUs: "没有 GPU",
  noMachines: "集群还没有机器。",
  noMachineMatch: "没有符合筛选条件的机器。",
  machinesShown: "{n} 台机器",
  machinesMore: "共 {n} 台机器，表中显示 {most} 台；图中显示全部",
  cpuUse: "CPU",
  memoryUse: "内存",
  coresOf: "已申请 {used} / {of} 核",
  gibOf: "已申请 {used} / {of} GiB",
  pods: "Pod",
  sinceTime: "起始时间",
  roles: "角色",
  machineAddress: "地址",
  driver: "驱动",
  kernel: "内核",
  os: "系统",
  health: "健康状况",
  holder: "占用者",
  useNow: "利用率",
  sourceIs: "{name}：{state}。",
  "source.api": "Kubernetes",
  "source.jobs": "作业",
  "source.scheduler": "调度器",
  "source.services": "服务",
  "source.prometheus": "Prometheus",
  "source.alerts": "Alertmanager",
  "sourceState.loading": "仍在加载",
  "sourceState.stale": "没有响应；这些数据已过时",
  "sourceState.absent": "不存在",
  "sourceState.failed": "没有响应",
  gpuMap: "GPU 分布图",
  noSuchVC: "您无法使用虚拟集群 {name}。",
  wants: "申请资源",
  wantsGPUs: "{n} 个 GPU",
  wantsShare: "{n} 份 GPU",
  wantsCPU: "{n} 核",
  waitsSince: "开始等待",
  waitsFor: "原因",
  "key.machines": "机器",
  "key.machine": "停止调度、恢复调度或排空当前打开的机器（限管理员）",
  gpuModel: "GPU 型号",
  templates: "模板",
  newTemplate: "新建模板",
  searchTemplates: "搜索模板",
  "view.all": "全部",
  "view.mine": "我的",
  "view.shared": "共享给我的",
  "view.official": "官方",
  "view.starred": "已收藏",
  "order.stars": "收藏最多",
  "order.uses": "使用最多",
  "order.updated": "最近修改",
  "order.name": "名称",
  order: "排序",
  labels: "标签",
  anyLabel: "所有标签",
  star: "收藏",
  unstar: "取消收藏",
  official: "官方",
  onlyAuthor: "仅作者可见",
  noSummary: "没有摘要",
  usedTimes: "已使用 {n} 次",
  noTemplates: "还没有模板。",
  noTemplatesHint: "可以将作业文件保存为模板：使用作业页或提交页的菜单，或点击“新建模板”。",
  noTemplateMatch: "没有符合筛选条件的模板。",
  author: "作者",
  sharedWith: "共享范围",
  uses: "使用次数",
  version: "版本",
  changedAt: "修改时间",
  createdAt: "创建时间",
  data: "数据",
  use: "使用",
  useHint: "点击“使用”，会在提交页用这些值打开作业文件，由服务器检查。",
  copySubmit: "复制提交命令（paictl）",
  edit: "编辑",
  save: "保存",
  saveTemplate: "保存为模板",
  builtIn: "内置",
  copyTemplate: "创建副本",
  copyOf: "{name} 的副本",
  editTemplate: "编辑 {name}",
  templateOf: "{job} 的模板",
  templateMasked: "该模板中的机密已隐藏（******）。提交前请填写您自己的值。",
  templateSecrets: "服务器会隐藏 secrets 下的值和镜像仓库的密码。parameters 的值不保密。",
  "ask.removeTemplate": "删除模板 {name}？",
  "ask.removeTemplate.more": "模板及其收藏会对所有人删除。用它提交的作业不受影响。",
  "done.removeTemplate": "模板已删除。",
  "done.keepTemplate": "模板已保存。",
  parameters: "参数",
  summary: "摘要",
  description: "说明",
  categories: "类别",
  commas: "多个值以逗号分隔。",
  "share.private": "仅自己",
  "share.groups": "以下用户组",
  "share.public": "所有人",
  "key.templates": "模板",
  usagePage: "用量",
  timeSpan: "时间",
  lastDays: "{n} 天",
  thisMonth: "本月",
  usageOf: "用量范围",
  usageOfMe: "我的用量",
  usageOfAll: "整个集群",
  usageOfVC: "虚拟集群 {vc}",
  rowsBy: "统计维度",
  "by.vc": "虚拟集群",
  "by.user": "用户",
  "by.type": "GPU 型号",
  "by.day": "日期",
  gpuHours: "GPU 小时",
  guaranteed: "保障型",
  opportunisticJobs: "机会型",
  preempted: "因抢占损失",
  failedAttempts: "失败",
  share: "占比",
  shareMore: "保障型作业占用该虚拟集群 GPU 的比例",
  unknown: "未知",
  noUsage: "这段时间内没有占用 GPU。",
  noUsageHint: "请选择更长的时间范围，或提交申请 GPU 的作业。",
  usageHint: "GPU 小时从任务获得机器开始计算，到任务结束为止，无论是否实际使用。抢占损失和失败的部分已包含在保障型和机会型之中。日期按 UTC 计算。",
  hoursADay: "纵轴上限：每天 {n} GPU 小时",
  chartOf: "{days} 天内共 {n} GPU 小时",
  "key.usage": "用量",
  profile: "个人资料",
  account: "账户",
  userName: "用户名",
  administrator: "管理员",
  groups: "用户组",
  noGroups: "无。请联系管理员将您加入用户组。",
  storages: "存储",
  noStorages: "无。可通过用户组获得授权。",
  identities: "登录方式",
  lastSignIn: "上次登录",
  everyVC: "所有虚拟集群。",
  "grant.submit": "可提交作业，优先级最高为 {priority}",
  "grant.seeJobs": "可查看他人的作业",
  "grant.hostNetwork": "可使用主机网络",
  nameAndMail: "姓名、邮箱与默认值",
  defaultVC: "默认虚拟集群",
  defaultVCHint: "任务文件未指定虚拟集群时，任务在此运行。",
  displayName: "显示名称",
  email: "邮箱",
  "done.profile": "个人资料已保存。",
  sshKeys: "SSH 公钥",
  noKeys: "还没有公钥。请粘贴您机器上的公钥，例如 ~/.ssh/id_ed25519.pub 的内容。",
  publicKey: "公钥",
  title: "标题",
  untitled: "无标题",
  addKey: "添加公钥",
  "done.addKey": "公钥已添加。",
  "key.private": "这是私钥，请勿提供给任何人。请粘贴 .pub 文件中的公钥。",
  "key.lines": "请只粘贴一个公钥，且不要换行。",
  "key.type": "公钥以密钥类型开头，例如 ssh-ed25519 或 ssh-rsa。请粘贴 .pub 文件的整行内容。",
  "key.cut": "公钥不完整。请重新复制 .pub 文件的整行内容。",
  "key.known": "您已有此公钥。",
  "ask.removeKey": "删除公钥 {name}？",
  "ask.removeKey.more": "该公钥会从您的个人资料中删除。作业文件中已包含该公钥的作业不受影响。",
  password: "密码",
  oldPassword: "当前密码",
  newPassword: "新密码",
  newPasswordAgain: "再次输入新密码",
  passwordsDiffer: "两次输入的新密码不同。",
  passwordEnds: "您的所有会话都会结束，需要重新登录。令牌仍然有效。",
  changePassword: "修改密码",
  tokens: "会话与令牌",
  tokensHint: "程序使用令牌登录：将其设为 paictl 的环境变量 PAICTL_TOKEN，或放在请求头 Authorization: Bearer 中。",
  noTokens: "还没有令牌。可以为无人值守的程序创建一个。",
  tokenOnce: "令牌 {name} 只显示这一次。请复制，并像密码一样妥善保管。",
  newToken: "新建令牌",
  createToken: "创建令牌",
  label: "标签",
  scopes: "权限范围",
  "scope.read": "查看作业、用量、虚拟集群和存储",
  "scope.submit": "提交作业，以及停止、进入和删除自己的作业",
  "scope.admin": "以管理员身份查看机器和 Pod",
  "scope.secrets": "读取存储的凭据和作业的密钥",
  validFor: "有效期",
  untilRevoked: "吊销前一直有效",
  lastUsed: "上次使用",
  expires: "到期时间",
  never: "无",
  client: "来源",
  thisSession: "当前会话",
  "kind.session": "paictl 会话",
  "kind.browser": "浏览器",
  "kind.application": "令牌",
  revoke: "吊销",
  "ask.revoke": "吊销 {name}？",
  "ask.revoke.more": "使用它的程序会立即失去登录状态。",
  "ask.revoke.own": "这是当前页面的会话：吊销后您会立即退出登录。",
  "done.revoke": "已吊销。",
  admin: "管理",
  editorHelp: "按 Ctrl+空格补全；先按 Escape 再按 Tab 可离开编辑器。",
  plainEditor: "编辑器加载失败。可以重新加载页面再试，也可以直接使用此文本框。",
  "edit.replace": "替换",
  "edit.replaceAll": "全部替换",
  "edit.all": "全部",
  "edit.case": "区分大小写",
  "edit.regexp": "正则表达式",
  "edit.word": "全字匹配",
  "edit.line": "转到行",
  "edit.go": "转到",
  "edit.completions": "补全",
  "edit.noFindings": "没有问题",
  "edit.control": "控制字符",
  "edit.folded": "已折叠的行",
  "edit.fold": "折叠",
  "edit.unfold": "展开",
  shell: "终端",
  openShell: "在 {task} 中打开终端",
  "shell.start": "打开终端",
  "shell.audited": "审计日志会记录谁在任务中打开了终端。",
  "shell.opening": "连接中…",
  "shell.open": "已连接。按 Ctrl+F6 离开终端。",
  "shell.ended": "Shell 已退出，退出码 {code}。",
  "shell.cut": "连接已断开。任务可能已结束，或者服务器已重启。",
  "shell.again": "再打开一个终端",
  "shell.none": "该作业目前没有运行中的任务。只能在运行中的任务里打开终端。",
  "shell.failed": "终端加载失败。请重新加载页面。",
  "shell.skipped": "输出过快，来不及显示，已跳过 {n} 字节。",
  "shell.keys": "按键",
  paste: "粘贴",
  pasteKeys: "浏览器不允许页面读取剪贴板。请在终端中按 Ctrl+Shift+V。",
  backToJob: "返回作业",
  "key.complete": "在编辑器中补全",
  "key.leave": "离开终端",
  palette: "查找页面、作业和模板",
  paletteHint: "前往页面、作业或模板…",
  nothingFound: "未找到结果。",
  "key.palette": "查找",
  notify: "我的作业结束时通知我",
  notifyRefused: "浏览器不允许此页面发送通知。",
  addTag: "添加标签",
  removeTag: "移除标签 {tag}",
  scale: "更改任务数",
  scaleMore: "增加任务数时，新任务会等待空闲的 GPU；减少时，编号最大的任务会结束。",
  scaled: "{role}：{before} → {tasks} 个任务",
  files: "文件",
  refresh: "刷新",
  replace: "替换",
  "files.path": "任务中的路径",
  "files.upload": "上传",
  "files.whole": "文件夹",
  "files.wholeMore": "将文件夹下载为 tar.gz",
  "files.copyOut": "复制拷出文件的命令",
  "files.copyIn": "复制拷入文件的命令",
  "files.sending": "正在上传 {name}：{percent}%",
  "files.sent": "{name} 已上传到任务中。",
  "files.stopped": "上传已停止。任务中可能留有不完整的文件。",
  "files.replace": "替换任务中的文件？",
  "files.size": "大小",
  "files.modified": "修改时间",
  "files.empty": "文件夹为空。将文件拖放到此处即可上传到任务中。",
  "files.more": "文件夹中还有更多条目，打开终端可查看全部。",
  metrics: "指标",
  overTime: "历史用量",
  findings: "数据解读",
  asTable: "以表格显示数据",
  metric: "指标",
  metricOf: "对象",
  limit: "上限",
  chartOver: "{title}随时间的变化，数据见下方表格。",
  chartFailed: "图表加载失败。请重新加载页面。",
  foldedOf: "{name} / {n}",
  manyThings: "全部",
  "span.1h": "1 小时",
  "span.6h": "6 小时",
  "span.1d": "1 天",
  "span.7d": "7 天",
  "span.30d": "30 天",
  "span.all": "全部",
  "metric.gpu-use": "GPU 利用率",
  "metric.gpu-memory": "GPU 显存",
  "metric.gpu-power": "GPU 功率",
  "metric.gpu-slowed": "GPU 因温度或供电降频（0 或 1）",
  "metric.gpu-temperature": "GPU 温度",
  "metric.cpu": "处理器",
  "metric.memory": "内存",
  "metric.network-in": "网络接收",
  "metric.network-out": "网络发送",
  "metric.disk-read": "磁盘读取",
  "metric.disk-write": "磁盘写入",
  "metric.disk-busy": "最繁忙的磁盘",
  "metric.filesystems": "文件系统",
  "metric.gpus": "GPU",
  "metric.held-use": "其任务所占 GPU 的利用率",
  "metric.cpu-cells": "CPU 单元",
  "metric.waiting": "等待中",
  "metric.oldest": "最长等待时间",
  "series.lowest": "最低",
  "series.mean": "平均",
  "series.highest": "最高",
  "series.guaranteed": "保障",
  "series.used": "其中已使用",
  "series.opportunistic": "机会型",
  "series.bad": "故障",
  "series.jobs": "作业",
  "series.tasks": "任务",
  "series.all": "全部",
  "series.the busiest": "最繁忙"
};
var known = { en, zh };
var names = { en: "English", zh: "中文" };
var languages = Object.entries(names);
var stored = localStorage.getItem("language") ?? navigator.language.slice(0, 2);
var language = signal2(known[stored] ? stored : "en");
function speak(name) {
  localStorage.setItem("language", name);
  language.value = name;
  document.documentElement.lang = name;
}
document.documentElement.lang = language.value;
function add(texts) {
  for (const [name, of] of Object.entries(texts)) Object.assign(known[name], of);
}
function t(key, values = {}) {
  return known[language.value][key].replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}
function maybe(key, fallback) {
  return Object.hasOwn(known.en, key) ? t(key) : fallback;
}

// pkg/portal/web/src/api.ts
import { signal as signal3 } from "./library.js";
var Failure = class extends Error {
  constructor(status, code, message, remedy = "", request = "", findings = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.remedy = remedy;
    this.request = request;
    this.findings = findings;
  }
  status;
  code;
  remedy;
  request;
  findings;
};
function failure(e) {
  return e instanceof Failure ? e : new Failure(0, "NoAnswer", t("noAnswer"), String(e?.message ?? ""));
}
function addressOf(route, args) {
  let path = route.slice(route.indexOf(" ") + 1);
  for (const [name, value] of Object.entries(args.path ?? {})) path = path.replace(`{${name}}`, encodeURIComponent(value));
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(args.query ?? {})) {
    if (value === void 0 || value === "" || value === false || Array.isArray(value) && value.length === 0) continue;
    q.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text = q.toString();
  return base + path.slice(1) + (text ? "?" + text : "");
}
async function call(route, args) {
  const answer = await ask(route, args, args.signal);
  return await answer.json();
}
async function send(route, args, file) {
  await ask(route, args, void 0, file ? { "Content-Type": "application/gzip" } : {}, file);
}
async function ask(route, args, stop, more = {}, file) {
  const headers = { ...more };
  if (args.body !== void 0) headers["Content-Type"] = "application/json";
  if (args.key) headers["Idempotency-Key"] = args.key;
  const method = route.slice(0, route.indexOf(" "));
  const body = file ?? (args.body === void 0 ? void 0 : JSON.stringify(args.body));
  const r = await fetch(addressOf(route, args), { method, headers, body, signal: stop, credentials: "same-origin" });
  if (r.ok) return r;
  let e = {};
  try {
    e = await r.json();
  } catch {
  }
  if (r.status === 401) toSignIn();
  throw new Failure(r.status, e.code ?? "UnknownError", e.message ?? t("status", { status: r.status }), e.remedy, e.request ?? r.headers.get("X-Request-Id") ?? "", e.findings);
}
function toSignIn() {
  location.assign(base + "sign-in?" + new URLSearchParams({ to: location.pathname + location.search }).toString());
}
async function* lines(r) {
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (; ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      yield* parts;
    }
    if (rest) yield rest;
  } finally {
    void reader.cancel().catch(() => {
    });
  }
}
async function frames(route, args, stop, take) {
  const r = await ask(route, args, stop);
  for await (const line of lines(r)) {
    if (!line) continue;
    const f = JSON.parse(line);
    if (f.end) return;
    if (f.error) throw new Failure(500, f.error.code, f.error.message, f.error.remedy, f.error.request);
    take(f);
  }
  throw new Failure(0, "NoAnswer", t("cut"));
}
var lost = signal3(null);
var longest = 3e4;
async function lasting(stop, run) {
  let wait = 500;
  for (; ; ) {
    try {
      await run(() => {
        wait = 500;
        lost.value = null;
      });
      return;
    } catch (e) {
      if (stop.aborted) return;
      const f = failure(e);
      if (f.status === 401) toSignIn();
      if (f.status >= 400 && f.status < 500 && f.status !== 429) throw f;
      lost.value = f;
      await pause(wait * (0.5 + Math.random()), stop);
      if (stop.aborted) return;
      wait = Math.min(wait * 2, longest);
    }
  }
}
function pause(ms, stop) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    stop.addEventListener("abort", end);
  });
}
async function* events(r) {
  let e = { name: "", data: "", id: "" };
  for await (const line of lines(r)) {
    if (line === "") {
      yield e;
      e = { name: "", data: "", id: "" };
    } else if (line.startsWith("event: ")) e.name = line.slice(7);
    else if (line.startsWith("data: ")) e.data += line.slice(6);
    else if (line.startsWith("id: ")) e.id = line.slice(4);
  }
}
function watchJobs(query, stop, to) {
  let last = "";
  return lasting(stop, async (alive) => {
    const r = await ask("GET /api/v3/jobs/watch", { query }, stop, last ? { "Last-Event-ID": last } : {});
    alive();
    let rows = null;
    for await (const e of events(r)) {
      switch (e.name) {
        case "snapshot":
          rows = [];
          break;
        case "job":
          if (rows) rows.push(JSON.parse(e.data));
          else to.changed(JSON.parse(e.data));
          break;
        case "gone":
          to.gone(JSON.parse(e.data).uid);
          break;
        case "ready": {
          const ready = JSON.parse(e.data);
          to.whole(rows ?? [], ready.next ?? "", ready.note ?? "");
          rows = null;
          break;
        }
        case "problem":
          lost.value = problem(e.data);
          break;
        case "back":
          lost.value = null;
          break;
        case "end":
          throw problem(e.data);
      }
      if (e.id) last = e.id;
    }
    throw new Failure(0, "NoAnswer", t("cut"));
  });
}
function watchStatus(parts, stop, whole, changed) {
  return lasting(stop, async (alive) => {
    const r = await ask("GET /api/v3/status/watch", { query: { parts } }, stop);
    alive();
    for await (const e of events(r)) {
      if (e.name === "snapshot") whole(JSON.parse(e.data));
      else if (e.name === "change") changed(JSON.parse(e.data));
      else if (e.name === "end") throw problem(e.data);
    }
    throw new Failure(0, "NoAnswer", t("cut"));
  });
}
function problem(data) {
  const e = JSON.parse(data);
  return new Failure(e.code === "UnauthorizedUserError" ? 401 : 503, e.code, e.message, e.remedy, e.request);
}

// pkg/portal/web/src/read.ts
import { useSignal } from "./library.js";
import { useEffect, useRef } from "./library.js";
function useRead(key, read2, every = 0) {
  const value = useSignal(null);
  const error = useSignal(null);
  const busy = useSignal(true);
  const round = useSignal(0);
  const of = useRef(null);
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    let timer = 0;
    const interval = () => typeof every === "number" ? every : every(value.peek());
    const ask3 = async () => {
      clearTimeout(timer);
      if (!document.hidden || of.current !== key) {
        try {
          const v = await read2(stop.signal);
          if (stop.signal.aborted) return;
          value.value = v;
          error.value = null;
          of.current = key;
        } catch (e) {
          if (stop.signal.aborted) return;
          if (of.current !== key) value.value = null;
          error.value = failure(e);
        }
        busy.value = false;
      }
      if (interval() > 0) timer = setTimeout(() => void ask3(), interval());
    };
    const seen = () => {
      if (interval() > 0 && !document.hidden) void ask3();
    };
    busy.value = true;
    void ask3();
    document.addEventListener("visibilitychange", seen);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, round.value]);
  return { value, error, busy, again: () => void round.value++ };
}
function useAct() {
  const busy = useSignal(false);
  const error = useSignal(null);
  const act = async (run) => {
    busy.value = true;
    error.value = null;
    try {
      await run();
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, act };
}

// pkg/portal/web/src/time.ts
import { signal as signal4 } from "./library.js";
var now = signal4(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1e3);
function duration(ms) {
  const s = Math.max(0, Math.floor(ms / 1e3));
  const [d, h, m] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60];
  if (d > 0) return `${d}d ${h}h`;
  if (h > 0) return `${h}h ${m}m`;
  if (m > 0) return `${m}m ${s % 60}s`;
  return `${s}s`;
}
function rough(ms) {
  const s = Math.floor(ms / 1e3);
  const of = (n, unit) => new Intl.NumberFormat(language.value, { style: "unit", unit, unitDisplay: "short" }).format(n);
  if (s < 3600) return of(Math.floor(s / 60), "minute");
  if (s < 86400) return of(Math.floor(s / 3600), "hour");
  return of(Math.floor(s / 86400), "day");
}
function since(time) {
  const ms = now.value - Date.parse(time);
  if (ms < 0 && ms > -6e4) return t("now");
  if (ms < 0) return t("in", { time: rough(-ms) });
  return ms < 6e4 ? t("now") : t("ago", { time: rough(ms) });
}
function exact(time) {
  return new Date(time).toLocaleString(language.value, { dateStyle: "medium", timeStyle: "medium" });
}

// pkg/portal/web/src/ui.tsx
import { signal as signal5, useSignal as useSignal2 } from "./library.js";
import { useEffect as useEffect2, useRef as useRef2 } from "./library.js";
import { Fragment, jsx, jsxs } from "./library.js";
var paths = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4V9.5h-3v4h-4z",
  jobs: "M2.5 4h11M2.5 8h11M2.5 12h7",
  plus: "M8 3v10M3 8h10",
  queue: "M2.5 3.5h11M4.5 8h9M6.5 12.5h7",
  machines: "M2.5 2.5h11v4.5h-11zM2.5 9h11v4.5h-11zM5 4.8h.01M5 11.3h.01",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3 3",
  stop: "M4 4h8v8H4z",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  copy: "M5.5 5.5h8v8h-8zM3 10.5h-.5v-8h8V3",
  trash: "M3 4.5h10M6.5 4V2.5h3V4M4.5 4.5l.5 9h6l.5-9",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  down: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10",
  link: "M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 8.5M9 11.5 7.5 13a2.8 2.8 0 0 1-4-4L5 7.5",
  chevron: "M6 4l4 4-4 4",
  up: "M4 10l4-4 4 4",
  drop: "M4 6l4 4 4-4",
  out: "M6.5 13.5h-4v-11h4M10 5l3 3-3 3M13 8H6",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  keys: "M1.5 4.5h13v7h-13zM4 7h.01M6.5 7h.01M9 7h.01M11.5 7h.01M5 9.3h6",
  close: "M4 4l8 8M12 4l-8 8",
  file: "M4 2.5h5l3 3v8H4zM9 2.5v3h3",
  folder: "M2 4h4l1.5 2H14v7H2z",
  warn: "M8 2.5 14 13H2zM8 6.5v3M8 11.3h.01",
  check: "M3 8.5 6.5 12 13 4.5",
  shell: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10h3",
  back: "M10 4 6 8l4 4",
  page: "M2.5 3h11v10h-11zM2.5 6h11",
  usage: "M3 13.5V8M8 13.5v-11M13 13.5v-4",
  person: "M8 2.5a2.7 2.7 0 1 0 0 5.4 2.7 2.7 0 0 0 0-5.4zM2.8 13.5a5.2 5.2 0 0 1 10.4 0",
  shield: "M8 1.8 13.3 4v4c0 3-2.2 5.2-5.3 6.2C4.9 13.2 2.7 11 2.7 8V4zM5.8 8l1.6 1.6 3-3",
  globe: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM2 8h12M8 2c4 4 4 8 0 12M8 2c-4 4-4 8 0 12"
};
function Icon({ name }) {
  return /* @__PURE__ */ jsx("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", children: /* @__PURE__ */ jsx("path", { d: paths[name] }) });
}
var family = { running: "run", starting: "run", barrier: "run", succeeded: "good", failed: "bad", waiting: "wait", queued: "wait", retry: "wait", stopping: "off", stopped: "off", deleting: "off", deleted: "off" };
function State({ state, position, deleted }) {
  return /* @__PURE__ */ jsxs("span", { class: `state ${family[state] ?? "off"}`, children: [
    /* @__PURE__ */ jsx("i", { class: state === "running" || state === "starting" ? "dot beats" : "dot" }),
    maybe("state." + state, state),
    state === "queued" && position ? /* @__PURE__ */ jsxs("span", { class: "faint", children: [
      " ",
      t("position", { n: position })
    ] }) : null,
    deleted && state !== "deleted" && state !== "deleting" ? /* @__PURE__ */ jsxs("span", { class: "faint", children: [
      " (",
      t("deletedToo"),
      ")"
    ] }) : null
  ] });
}
function Ago({ time }) {
  return time ? /* @__PURE__ */ jsx("time", { dateTime: time, title: exact(time), children: since(time) }) : null;
}
function Problem({ of, again }) {
  const f = failure(of);
  return /* @__PURE__ */ jsxs("div", { class: "problem", role: "alert", children: [
    /* @__PURE__ */ jsx(Icon, { name: "warn" }),
    /* @__PURE__ */ jsxs("div", { children: [
      /* @__PURE__ */ jsx("p", { class: "says", children: f.message }),
      f.remedy ? /* @__PURE__ */ jsx("p", { children: f.remedy }) : null,
      /* @__PURE__ */ jsxs("p", { class: "faint", children: [
        /* @__PURE__ */ jsx("code", { children: f.code }),
        f.request ? /* @__PURE__ */ jsxs(Fragment, { children: [
          " · ",
          t("requestId", { id: "" }),
          /* @__PURE__ */ jsx(Copied, { text: f.request, children: /* @__PURE__ */ jsx("code", { children: f.request }) })
        ] }) : null
      ] }),
      again ? /* @__PURE__ */ jsx("button", { type: "button", onClick: again, children: t("again") }) : null
    ] })
  ] });
}
function Lost() {
  const f = lost.value;
  return f ? /* @__PURE__ */ jsxs("p", { class: "lost", role: "status", children: [
    /* @__PURE__ */ jsx(Icon, { name: "warn" }),
    " ",
    t("lost", { why: f.message }),
    " ",
    f.code !== "NoAnswer" ? /* @__PURE__ */ jsx("code", { children: f.code }) : null,
    " ",
    f.request ? /* @__PURE__ */ jsx("span", { class: "faint", children: t("requestId", { id: f.request }) }) : null
  ] }) : null;
}
var toasts = signal5([]);
var toastId = 0;
function toast(text) {
  const id = ++toastId;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => toasts.value = toasts.value.filter((x) => x.id !== id), 4e3);
}
function Toasts() {
  return /* @__PURE__ */ jsx("div", { class: "toasts", role: "status", "aria-live": "polite", children: toasts.value.map((x) => /* @__PURE__ */ jsx("div", { class: "toast", children: x.text }, x.id)) });
}
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(text);
  }
}
function Copied({ text, children }) {
  return /* @__PURE__ */ jsx("button", { type: "button", class: "bare", title: t("copy"), onClick: () => void copy(text), children });
}
function save(name, parts, type) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob(parts, { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1e4);
}
function Menu({ label, icon, items, children }) {
  const open = useSignal2(false);
  const box = useRef2(null);
  useEffect2(() => {
    if (!open.value) return;
    const away = (e) => {
      if (!box.current?.contains(e.target)) open.value = false;
    };
    addEventListener("pointerdown", away);
    addEventListener("focusin", away);
    box.current?.querySelector("[role=menuitem]")?.focus();
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("focusin", away);
    };
  }, [open.value]);
  const keys = (e) => {
    const all = [...box.current?.querySelectorAll("[role=menuitem]") ?? []];
    const at = all.indexOf(document.activeElement);
    if (e.key === "Escape" && open.value) {
      open.value = false;
      (box.current?.querySelector("button")).focus();
      e.stopPropagation();
    } else if (open.value && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
      all[(at + (e.key === "ArrowDown" ? 1 : all.length - 1)) % all.length]?.focus();
      e.preventDefault();
      e.stopPropagation();
    }
  };
  return /* @__PURE__ */ jsxs("div", { class: "menu", ref: box, onKeyDown: keys, children: [
    /* @__PURE__ */ jsxs("button", { type: "button", class: children ? "" : "square", "aria-haspopup": "menu", "aria-expanded": open.value, "aria-label": children ? void 0 : label, title: label, onClick: () => open.value = !open.value, children: [
      icon ? /* @__PURE__ */ jsx(Icon, { name: icon }) : null,
      children
    ] }),
    open.value ? /* @__PURE__ */ jsx("div", { class: "menu-list", role: "menu", "aria-label": label, children: items.map(
      (i) => i ? /* @__PURE__ */ jsxs(
        "button",
        {
          type: "button",
          role: "menuitem",
          class: i.danger ? "danger" : "",
          onClick: () => {
            open.value = false;
            i.run();
          },
          children: [
            i.icon ? /* @__PURE__ */ jsx(Icon, { name: i.icon }) : /* @__PURE__ */ jsx("span", { class: "icon" }),
            i.label
          ]
        },
        i.label
      ) : /* @__PURE__ */ jsx("hr", {})
    ) }) : null
  ] });
}
var question = signal5(null);
function ask2(q) {
  question.value = q;
}
function Asking() {
  const q = question.value;
  const { busy, error, act } = useAct();
  const box = useRef2(null);
  useEffect2(() => {
    error.value = null;
    if (q) box.current?.showModal();
  }, [q]);
  if (!q) return null;
  const end = () => {
    box.current?.close();
    question.value = null;
  };
  const yes = () => act(async () => {
    await q.act();
    end();
  });
  return /* @__PURE__ */ jsx("dialog", { ref: box, onCancel: end, onClick: (e) => e.target === box.current && end(), "aria-labelledby": "asked", children: /* @__PURE__ */ jsxs("div", { class: "dialog", children: [
    /* @__PURE__ */ jsx("h2", { id: "asked", children: q.title }),
    /* @__PURE__ */ jsx("p", { children: q.text }),
    error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsxs("div", { class: "buttons", children: [
      /* @__PURE__ */ jsx("button", { type: "button", onClick: end, children: t("cancel") }),
      /* @__PURE__ */ jsx("button", { type: "button", class: q.danger ? "primary danger" : "primary", disabled: busy.value, onClick: () => void yes(), children: q.yes })
    ] })
  ] }) });
}
function Loading() {
  return /* @__PURE__ */ jsx("p", { class: "loading faint", children: t("loading") });
}
function Bar({ parts, total, label }) {
  return /* @__PURE__ */ jsx("div", { class: "bar", role: "img", "aria-label": label, title: label, children: parts.map((p) => p.n > 0 ? /* @__PURE__ */ jsx("i", { class: p.class, style: { width: `${100 * p.n / Math.max(total, 1)}%` } }, p.class) : null) });
}

export {
  base,
  place,
  address,
  go,
  setQuery,
  start,
  languages,
  language,
  speak,
  add,
  t,
  maybe,
  Failure,
  failure,
  addressOf,
  call,
  send,
  toSignIn,
  frames,
  lost,
  lasting,
  watchJobs,
  watchStatus,
  useRead,
  useAct,
  now,
  duration,
  exact,
  Icon,
  State,
  Ago,
  Problem,
  Lost,
  toast,
  Toasts,
  copy,
  Copied,
  save,
  Menu,
  ask2 as ask,
  Asking,
  Loading,
  Bar
};
