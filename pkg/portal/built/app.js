// pkg/portal/web/src/main.tsx
import { render } from "./library.js";
import { useSignal as useSignal18 } from "./library.js";
import { useEffect as useEffect24, useRef as useRef13 } from "./library.js";

// pkg/portal/web/src/admin.tsx
import { useEffect as useEffect8 } from "./library.js";

// pkg/portal/web/src/admin-parts.tsx
import { useSignal as useSignal2 } from "./library.js";
import { useEffect as useEffect3, useRef as useRef2 } from "./library.js";

// pkg/portal/web/src/api.ts
import { signal as signal3 } from "./library.js";

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
  const text2 = q.toString();
  return base + path.map(encodeURIComponent).join("/") + (text2 ? "?" + text2 : "");
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
  enterSecrets: "Secrets of the original are masked (******). Enter them again before you submit.",
  willRequest: "Virtual cluster {vc} · tasks: {tasks} · GPUs: {gpus}",
  emptyFile: "Write a job file, open one, or start from the example.",
  yourVCs: "Where it can run",
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
  nameAndMail: "Name and e-mail",
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
  "admin.tab.people": "People",
  "admin.tab.groups": "Groups",
  "admin.tab.virtual-clusters": "Virtual clusters",
  "admin.tab.services": "Services",
  "admin.tab.alerts": "Alerts",
  "admin.tab.audit": "Audit",
  "admin.removeName": "Remove {name}",
  "admin.provider": "Provider",
  "admin.addPair": "Add",
  "admin.conflict": "Read it again to see what has changed. Your own changes stay in the form.",
  "admin.readAgain": "Read again",
  "admin.shownOf": "{n} of {all}",
  "admin.showMore": "Show more",
  "admin.disabled": "Disabled",
  "admin.active": "Active",
  "admin.administrator": "Administrator",
  "admin.administrators": "Administrators",
  "admin.addPerson": "Add a person",
  "admin.searchPeople": "Search people",
  "admin.group": "Group",
  "admin.anyGroup": "All groups",
  "admin.noPerson": "No person matches.",
  "admin.people": "{n} people",
  "admin.displayName": "Display name",
  "admin.email": "E-mail",
  "admin.groups": "Groups",
  "admin.lastSignIn": "Last sign-in",
  "admin.never": "never",
  "admin.created": "Created",
  "admin.added": "{name} was added.",
  "admin.nameHint": "Letters, digits, and . _ - between them. It can't be changed later.",
  "admin.defaultGroup": "Without a group, the person is in the group default.",
  "admin.addGroupTo": "Add a group…",
  "admin.password": "Password",
  "admin.passwordHint": "At least 10 characters. Without a password, the person needs an identity at a provider.",
  "admin.identities": "Identities at providers of sign-ins",
  "admin.identitiesHint": "Anyone who signs in at the provider with this subject is this person.",
  "admin.subject": "Subject",
  "admin.takeOver": "Take over the jobs of an earlier person of this name",
  "admin.takeOverHint": "A name that jobs have is refused otherwise.",
  "admin.add": "Add",
  "admin.asCommand": "As a command:",
  "admin.saved": "Saved.",
  "admin.save": "Save",
  "admin.discard": "Discard changes",
  "admin.theirAudit": "Audit",
  "admin.allVCs": "all",
  "admin.storages": "Storages",
  "admin.externalGroups": "Also in {names}, by a provider of sign-ins.",
  "admin.disable": "Disabled",
  "admin.disableHint": "A disabled person can't sign in, and their tokens are refused.",
  "admin.removePerson": "Remove person",
  "admin.removeHint": "Their jobs are stopped. Their password, tokens and job templates are deleted, and can't be restored. The name stays taken, because jobs have it.",
  "admin.askRemove": "Remove {name}?",
  "admin.removed": "{name} was removed.",
  "admin.oldPassword": "Your current password",
  "admin.newPassword": "New password",
  "admin.newPasswordHint": "All sessions of the person end. Application tokens stay valid.",
  "admin.setPassword": "Set password",
  "admin.passwordSet": "The password was set.",
  "admin.tokens": "Tokens and sessions",
  "admin.noTokens": "No tokens.",
  "admin.kind.session": "Session of paictl",
  "admin.kind.browser": "Browser",
  "admin.kind.application": "Application token",
  "admin.used": "used",
  "admin.thisSession": "(this session)",
  "admin.revoke": "Revoke",
  "admin.revokeAll": "Revoke all",
  "admin.revokeHint": "Requests with it are refused within a second.",
  "admin.revokeOwn": "Your own session ends, too. Then sign in again.",
  "admin.revoked": "Revoked.",
  "admin.askRevoke": "Revoke {name}?",
  "admin.askRevokeAll": "Revoke all tokens and sessions of {name}?",
  "admin.addGroup": "Add a group",
  "admin.searchGroups": "Search groups",
  "admin.noGroup": "No group matches.",
  "admin.members": "Members",
  "admin.pages": "Pages",
  "admin.allPages": "all",
  "admin.description": "Description",
  "admin.grantsAdministration": "Members are administrators",
  "admin.grantsAdministrationHint": "They may do everything except use storages.",
  "admin.grantsAllVCs": "Members may use all virtual clusters, including later ones",
  "admin.seeJobs": "see each other's jobs",
  "admin.hostNetwork": "machines' network",
  "admin.maxPriority": "Highest priority",
  "admin.upTo": "up to {name}",
  "admin.addVCTo": "Grant a virtual cluster…",
  "admin.storagesHint": "The first is the default storage of the group.",
  "admin.addStorage": "Add a storage",
  "admin.page.monitoring": "Monitoring",
  "admin.page.alerts": "Alerts",
  "admin.page.monitoring-write": "Silence alerts",
  "admin.external": "Groups at providers of sign-ins",
  "admin.externalHint": "Members of these groups are members of this group.",
  "admin.askDeleteGroup": "Delete the group {name}?",
  "admin.deleteGroupHint": "Its {n} members lose what it grants.",
  "admin.addMember": "Add a member…",
  "admin.noMembers": "Nobody is in this group.",
  "admin.removeMember": "Remove",
  "admin.byProvider": "by a provider",
  "admin.memberAdded": "{name} is in {group} now.",
  "admin.memberRemoved": "{name} isn't in {group} any longer.",
  "admin.addVC": "Add a virtual cluster",
  "admin.searchVCs": "Search virtual clusters",
  "admin.noVC": "There are no virtual clusters.",
  "admin.noSuchVC": "The virtual cluster {name} doesn't exist.",
  "admin.vcExists": "The virtual cluster {name} exists already, and the change would be one of it.",
  "admin.pinnedCell": "pinned {id}",
  "admin.perUser": "{n} per user",
  "admin.perGroup": "{n} per group",
  "admin.guaranteed": "Guaranteed",
  "admin.inUse": "In use",
  "admin.free": "Free",
  "admin.waiting": "Waiting",
  "admin.broken": "Out of order",
  "admin.lent": "Opportunistic",
  "admin.cells": "Cells",
  "admin.quota": "Quota",
  "admin.oldConfiguration": "The scheduler refused the latest configuration and uses an earlier one: {why}",
  "admin.deletedVCs": "Deleted, but jobs still run in them: {names}",
  "admin.cellType": "Type of cell",
  "admin.number": "Number",
  "admin.cellsHint": "The machines, or parts of machines, that it owns. 0 removes a type.",
  "admin.cpuCells": "CPU cells",
  "admin.takeFrom": "Exchange cells with",
  "admin.takeFromNone": "no other virtual cluster",
  "admin.takeFromHint": "It loses the cells that this one gets, and gets those that this one loses.",
  "admin.quotaPerUser": "GPUs per user",
  "admin.quotaPerGroup": "GPUs per group",
  "admin.noLimit": "0 means no limit.",
  "admin.quotaUsers": "Different quota of users",
  "admin.quotaGroups": "Different quota of groups",
  "admin.person": "Person",
  "admin.policy": "Preemption",
  "admin.policy.balanced": "Short waits for all.",
  "admin.policy.fewer-kills": "Fewer opportunistic jobs are preempted, but they wait longer.",
  "admin.policy.start-now": "Opportunistic jobs start whenever there is room, but are preempted more often.",
  "admin.preview": "Preview",
  "admin.previewAgain": "Preview again",
  "admin.previewHint": "Change something to preview its effect. Nothing is stored before you apply it.",
  "admin.ownsNow": "Owns now",
  "admin.ownsThen": "Would own",
  "admin.jobsAffected": "Jobs affected: {n}",
  "admin.noJobAffected": "No job is affected.",
  "admin.diff": "Change of the configuration",
  "admin.effect.downgraded": "Loses its guarantee: it continues to run, and the owners of its cells may preempt it.",
  "admin.effect.restored": "Has its guarantee again.",
  "admin.effect.refused": "Waits, and could never start.",
  "admin.effect.orphaned": "Continues to run without a guarantee; a retry would be refused.",
  "admin.nothingChanges": "Nothing to change: revision {n} already has these values.",
  "admin.pending": "Revision {n} already has these values, and the scheduler doesn't have them yet.",
  "admin.invalid": "The scheduler would refuse this change.",
  "admin.reason": "Reason",
  "admin.reasonHint": "The history of the configuration keeps it.",
  "admin.force": "Apply it although jobs are inside",
  "admin.forceHint": "Running jobs continue without a guarantee, and waiting jobs never start.",
  "admin.apply": "Apply to revision {n}",
  "admin.stored": "Revision {n} is stored.",
  "admin.storedAndLoaded": "Revision {n} is stored, and the scheduler loads it.",
  "admin.storedOnly": "Revision {n} is stored. It takes effect with: paictl service start -n scheduler",
  "admin.deleteVC": "Delete {name}",
  "admin.deleteVCHint": "The preview names the jobs that would lose their virtual cluster.",
  "admin.heir": "Its cells go to",
  "admin.noHeir": "no virtual cluster",
  "admin.keep": "Keep",
  "admin.searchServices": "Search services",
  "admin.trouble": "Needs attention",
  "admin.pods": "Pods",
  "admin.release": "Release",
  "admin.configuration": "Configuration",
  "admin.updated": "Updated",
  "admin.current": "up to date",
  "admin.noService": "There are no services.",
  "admin.noServiceHere": "No service matches.",
  "admin.andMore": "and {n} more",
  "admin.noProblems": "It has no problems.",
  "admin.namespace": "Namespace",
  "admin.chart": "Chart",
  "admin.revision": "Revision",
  "admin.installedBy": "Installed by",
  "admin.serviceCommands": "The server doesn't manage services. Run these with a kubeconfig:",
  "admin.service.ready": "Ready",
  "admin.service.starting": "Starting",
  "admin.service.failed": "Failed",
  "admin.service.stopped": "Stopped",
  "admin.service.not installed": "Not installed",
  "admin.service.disabled": "Disabled",
  "admin.service.orphan": "Not in the configuration",
  "admin.service.unknown": "Unknown",
  "admin.alert": "Alert",
  "admin.severity": "Severity",
  "admin.severity.critical": "Critical",
  "admin.severity.warning": "Warning",
  "admin.severity.info": "Info",
  "admin.severity.silenced": "Silenced",
  "admin.since": "Since",
  "admin.summary": "Summary",
  "admin.runbook": "Runbook",
  "admin.noAlert": "No alert fires.",
  "admin.noAlertHere": "No alert matches.",
  "admin.alertsMissing": "Alerts aren't available: {why}",
  "admin.actor": "Person",
  "admin.verb": "Action",
  "admin.kind": "Kind",
  "admin.from": "From",
  "admin.until": "Until",
  "admin.outcome": "Outcome",
  "admin.outcome.done": "Done",
  "admin.outcome.refused": "Refused",
  "admin.outcome.failed": "Failed",
  "admin.anyTime": "Any time",
  "admin.last.1h": "1 hour",
  "admin.last.24h": "1 day",
  "admin.last.7d": "7 days",
  "admin.last.30d": "30 days",
  "admin.noRecord": "The audit has no records yet.",
  "admin.noRecordHere": "No record matches these filters.",
  "admin.records": "{n} records",
  "admin.olderRecords": "Show older records",
  "admin.csvCut": "The file has the latest {n} records. Choose a shorter time for the others.",
  "admin.status": "Status",
  "admin.token": "Token",
  "admin.request": "Request",
  "admin.actorUID": "UID of the person",
  "admin.record": "Record",
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
  "key.leave": "Leave the terminal"
};
var zh = {
  home: "首页",
  jobs: "任务",
  submit: "提交",
  newJob: "新建任务",
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
  status: "服务器返回状态 {status}。",
  requestId: "请求 {id}",
  again: "重试",
  lost: "未实时更新：{why} 正在重试…",
  live: "实时",
  pages: "其他页面",
  notFound: "该页面不存在。",
  state: "状态",
  name: "名称",
  owner: "所有者",
  vc: "虚拟集群",
  tasks: "实例",
  gpus: "GPU",
  submitted: "提交时间",
  duration: "时长",
  retries: "重试",
  priority: "优先级",
  tags: "标签",
  "state.waiting": "等待中",
  "state.queued": "排队中",
  "state.starting": "启动中",
  "state.barrier": "等待其他实例",
  "state.running": "运行中",
  "state.stopping": "停止中",
  "state.retry": "将重试",
  "state.succeeded": "成功",
  "state.failed": "失败",
  "state.stopped": "已停止",
  "state.deleting": "删除中",
  "state.deleted": "已删除",
  "state.active": "进行中",
  "state.all": "全部",
  position: "队列第 {n} 位",
  deletedToo: "已删除",
  search: "搜索任务",
  mine: "我的",
  everyone: "所有人",
  anyVC: "所有虚拟集群",
  csv: "CSV",
  csvMore: "将筛选结果下载为 CSV",
  older: "显示更早的任务",
  noJobs: "还没有任务。",
  noJobsHint: "提交一个任务文件，或复制同事的任务。",
  noMatch: "没有符合筛选条件的任务。",
  clearFilters: "清除筛选",
  loading: "加载中…",
  shown: "{n} 个任务",
  shownMore: "{n} 个任务，下方还有更多",
  overview: "实例",
  logs: "日志",
  events: "事件",
  config: "配置",
  attempts: "尝试",
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
  "ask.stop.more": "其实例将结束，机器将被释放。之后可以重新运行。",
  "ask.retry": "重新运行 {job}？",
  "ask.retry.more": "将按提交时的内容，以同名任务从头开始。",
  "ask.remove": "删除 {job}？",
  "ask.remove.more": "其实例将立即结束。历史中会保留该任务及其日志。",
  "done.stop": "正在停止该任务。",
  "done.retry": "任务重新运行。",
  "done.remove": "任务已删除。",
  whatToDo: "建议",
  details: "详情",
  lastLines: "日志的最后几行",
  role: "角色",
  task: "实例",
  machine: "机器",
  exit: "退出",
  started: "开始时间",
  attempt: "尝试",
  address: "地址",
  noTasks: "该任务还没有实例。",
  filterTasks: "筛选实例",
  moreTasks: "再显示 {n} 个",
  allTasks: "所有实例",
  image: "镜像",
  result: "结果",
  ended: "结束时间",
  noAttempts: "尚未开始任何尝试。",
  noEvents: "没有事件。",
  noConfig: "该任务不是以任务文件提交的，或者您无权查看。",
  time: "时间",
  reason: "原因",
  message: "消息",
  object: "对象",
  download: "下载",
  masked: "密钥已隐藏。",
  find: "查找",
  matches: "第 {at} 个，共 {n} 个",
  noMatches: "无匹配",
  follow: "跟随",
  wrap: "自动换行",
  times: "时间戳",
  previous: "上一次尝试",
  fromStart: "从头加载",
  newest: "最新行",
  emptyLog: "还没有日志。",
  logEnded: "日志结束",
  logFollows: "新的日志会实时出现。",
  tooLong: "此处只保留最后 {n} 行。下载日志可查看全部。",
  showingLast: "每个实例的最后 {n} 行。",
  next: "下一个",
  before: "上一个",
  lines: "{n} 行",
  hello: "您好，{name}",
  myJobs: "我的任务",
  allMine: "我的全部任务",
  vcs: "虚拟集群",
  free: "{n} 空闲",
  ofTotal: "共 {n} 个 GPU",
  ofCPU: "共 {n} 个 CPU 单元",
  largest: "最大的空闲块有 {n} 个 GPU。",
  largestNone: "目前没有空闲的 GPU。",
  waitingJobs: "{n} 个等待",
  nobodyWaits: "无人等待",
  broken: "{n} 个故障",
  opportunistic: "{n} 个借给他人",
  usage: "{used} 个使用中，{free} 个空闲，{bad} 个故障",
  noVCs: "您还没有可用的虚拟集群。请联系管理员加入相应的组。",
  activeCount: "{n} 个进行中",
  jobFile: "任务文件",
  check: "检查",
  checking: "检查中…",
  fine: "服务器接受该任务。",
  warnings: "服务器接受该任务，但有提示：",
  refused: "服务器不接受该任务：",
  line: "第 {n} 行",
  submitJob: "提交任务",
  submitting: "提交中…",
  openFile: "打开文件",
  example: "使用示例",
  cloneOf: "{job} 的副本",
  enterSecrets: "原任务的密钥已隐藏（******）。提交前请重新填写。",
  willRequest: "虚拟集群 {vc} · 实例：{tasks} · GPU：{gpus}",
  emptyFile: "编写任务文件、打开文件，或使用示例。",
  yourVCs: "可以运行的位置",
  "key.search": "搜索",
  "key.next": "下一行",
  "key.prev": "上一行",
  "key.open": "打开所选行",
  "key.home": "首页",
  "key.jobs": "任务",
  "key.submit": "新建任务",
  "key.tabs": "任务的标签页",
  "key.send": "提交任务文件",
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
  "mapBy.use": "使用率",
  "mapBy.owner": "用户",
  "mapBy.vc": "虚拟集群",
  "mapBy.health": "健康状况",
  mapBy: "颜色表示",
  mapLabel: "{n} 台机器的 GPU 图。用方向键移动，按 Enter 打开机器。",
  mapFree: "空闲",
  mapSomeone: "他人占用",
  mapOthers: "其他 {n} 个",
  mapNoUse: "已占用，使用率未知",
  mapDown: "不可用",
  mapBroken: "故障",
  mapOpportunistic: "机会性",
  mapUse: "使用率 {n} %",
  mapMemory: "显存 {used} / {of} GiB",
  wall: "大屏",
  wallMore: "只显示 GPU 图，用于墙上的屏幕",
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
  sinceTime: "起始",
  roles: "角色",
  machineAddress: "地址",
  driver: "驱动",
  kernel: "内核",
  os: "系统",
  health: "健康状况",
  holder: "占用者",
  useNow: "使用率",
  sourceIs: "{name}：{state}。",
  "source.api": "Kubernetes",
  "source.jobs": "任务",
  "source.scheduler": "调度器",
  "source.services": "服务",
  "source.prometheus": "Prometheus",
  "source.alerts": "Alertmanager",
  "sourceState.stale": "没有响应；这些数据已过时",
  "sourceState.absent": "不存在",
  "sourceState.failed": "没有响应",
  gpuMap: "GPU 图",
  noSuchVC: "您不能使用名为 {name} 的虚拟集群。",
  wants: "需要",
  wantsGPUs: "{n} 个 GPU",
  wantsShare: "{n} 份 GPU",
  wantsCPU: "{n} 核",
  waitsSince: "开始等待",
  waitsFor: "原因",
  "key.machines": "机器",
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
  onlyAuthor: "仅作者",
  noSummary: "没有摘要",
  usedTimes: "已使用 {n} 次",
  noTemplates: "还没有模板。",
  noTemplatesHint: "将任务文件保存为模板：使用任务页面或提交页面的菜单，或点击“新建模板”。",
  noTemplateMatch: "没有符合筛选条件的模板。",
  author: "作者",
  sharedWith: "共享范围",
  uses: "使用次数",
  version: "版本",
  changedAt: "修改时间",
  createdAt: "创建时间",
  data: "数据",
  use: "使用",
  useHint: "“使用”会在提交页面打开带有这些值的任务文件，并由服务器检查。",
  copySubmit: "复制提交命令（paictl）",
  edit: "编辑",
  save: "保存",
  saveTemplate: "保存为模板",
  editTemplate: "编辑 {name}",
  templateOf: "{job} 的模板",
  templateMasked: "该模板的密钥已隐藏（******）。提交前请填写您自己的密钥。",
  templateSecrets: "服务器会隐藏 secrets 下的值和镜像仓库的密码。parameters 的值不是机密。",
  "ask.removeTemplate": "删除模板 {name}？",
  "ask.removeTemplate.more": "模板及其收藏将对所有人删除。由它提交的任务会保留。",
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
  rowsBy: "按行",
  "by.vc": "虚拟集群",
  "by.user": "用户",
  "by.type": "GPU 型号",
  "by.day": "日期",
  gpuHours: "GPU 小时",
  guaranteed: "有保证",
  opportunisticJobs: "机会性",
  preempted: "因抢占损失",
  failedAttempts: "失败",
  share: "占比",
  shareMore: "有保证的任务占用该虚拟集群 GPU 的比例",
  unknown: "未知",
  noUsage: "这段时间没有占用 GPU。",
  noUsageHint: "选择更长的时间，或提交申请 GPU 的任务。",
  usageHint: "GPU 小时从实例获得机器起计算，直到其结束，无论是否使用。损失和失败的小时已包含在有保证和机会性的小时中。日期按 UTC 计算。",
  hoursADay: "顶部：每天 {n} GPU 小时",
  chartOf: "{days} 天内共 {n} GPU 小时",
  "key.usage": "用量",
  profile: "个人资料",
  account: "账户",
  userName: "用户名",
  administrator: "管理员",
  groups: "用户组",
  noGroups: "无：请联系管理员加入用户组。",
  storages: "存储",
  noStorages: "无：可由用户组授予。",
  identities: "登录方式",
  lastSignIn: "上次登录",
  everyVC: "所有虚拟集群。",
  "grant.submit": "可提交，最高优先级 {priority}",
  "grant.seeJobs": "可查看他人的任务",
  "grant.hostNetwork": "可使用机器的网络",
  nameAndMail: "姓名与邮箱",
  displayName: "显示名称",
  email: "邮箱",
  "done.profile": "个人资料已保存。",
  sshKeys: "SSH 公钥",
  noKeys: "还没有公钥。粘贴您机器的公钥，例如 ~/.ssh/id_ed25519.pub 的内容。",
  publicKey: "公钥",
  title: "标题",
  untitled: "无标题",
  addKey: "添加公钥",
  "done.addKey": "公钥已添加。",
  "key.private": "这是私钥，请勿提供给任何人。请粘贴以 .pub 结尾的文件中的公钥。",
  "key.lines": "请粘贴一个公钥，且只占一行。",
  "key.type": "公钥以类型开头，例如 ssh-ed25519 或 ssh-rsa。请粘贴 .pub 文件的整行内容。",
  "key.cut": "公钥不完整。请重新复制 .pub 文件的整行内容。",
  "key.known": "您已有此公钥。",
  "ask.removeKey": "删除公钥 {name}？",
  "ask.removeKey.more": "它将从您的个人资料中删除。任务文件中已包含它的任务不受影响。",
  password: "密码",
  oldPassword: "当前密码",
  newPassword: "新密码",
  newPasswordAgain: "再次输入新密码",
  passwordsDiffer: "两次输入的新密码不同。",
  passwordEnds: "您的所有会话都会结束，需要重新登录。令牌仍然有效。",
  changePassword: "修改密码",
  tokens: "会话与令牌",
  tokensHint: "程序用令牌登录：为 paictl 设置 PAICTL_TOKEN，或以 Authorization: Bearer 发送。",
  noTokens: "还没有令牌。可为独立运行的程序创建一个。",
  tokenOnce: "令牌 {name} 只显示这一次。请复制并像密码一样保管。",
  newToken: "新建令牌",
  createToken: "创建令牌",
  label: "标签",
  scopes: "权限范围",
  "scope.read": "查看任务、用量、虚拟集群和存储",
  "scope.submit": "提交任务，停止、进入和删除自己的任务",
  "scope.admin": "以管理员身份查看机器和 Pod",
  "scope.secrets": "读取存储凭据和任务密钥",
  validFor: "有效期",
  untilRevoked: "直到被撤销",
  lastUsed: "上次使用",
  expires: "到期",
  never: "从不",
  client: "来源",
  thisSession: "当前会话",
  "kind.session": "paictl 会话",
  "kind.browser": "浏览器",
  "kind.application": "令牌",
  revoke: "撤销",
  "ask.revoke": "撤销 {name}？",
  "ask.revoke.more": "使用它的程序会立即退出登录。",
  "ask.revoke.own": "这是当前页面的会话：您会立即退出登录。",
  "done.revoke": "已撤销。",
  admin: "管理",
  "admin.tab.people": "用户",
  "admin.tab.groups": "组",
  "admin.tab.virtual-clusters": "虚拟集群",
  "admin.tab.services": "服务",
  "admin.tab.alerts": "告警",
  "admin.tab.audit": "审计",
  "admin.removeName": "移除 {name}",
  "admin.provider": "提供方",
  "admin.addPair": "添加",
  "admin.conflict": "重新读取即可看到变化。您自己的修改会保留在表单中。",
  "admin.readAgain": "重新读取",
  "admin.shownOf": "{n} / {all}",
  "admin.showMore": "显示更多",
  "admin.disabled": "已禁用",
  "admin.active": "正常",
  "admin.administrator": "管理员",
  "admin.administrators": "管理员",
  "admin.addPerson": "添加用户",
  "admin.searchPeople": "搜索用户",
  "admin.group": "组",
  "admin.anyGroup": "所有组",
  "admin.noPerson": "没有符合条件的用户。",
  "admin.people": "{n} 个用户",
  "admin.displayName": "显示名称",
  "admin.email": "电子邮件",
  "admin.groups": "组",
  "admin.lastSignIn": "上次登录",
  "admin.never": "从未",
  "admin.created": "创建时间",
  "admin.added": "已添加 {name}。",
  "admin.nameHint": "字母、数字，中间可含 . _ -。之后不能更改。",
  "admin.defaultGroup": "未选择组时，用户属于 default 组。",
  "admin.addGroupTo": "添加组…",
  "admin.password": "密码",
  "admin.passwordHint": "至少 10 个字符。没有密码的用户需要提供方的身份。",
  "admin.identities": "登录提供方的身份",
  "admin.identitiesHint": "在该提供方以此标识登录的人即为该用户。",
  "admin.subject": "标识",
  "admin.takeOver": "接管此前同名用户的任务",
  "admin.takeOverHint": "否则，已有任务使用的名称会被拒绝。",
  "admin.add": "添加",
  "admin.asCommand": "对应的命令：",
  "admin.saved": "已保存。",
  "admin.save": "保存",
  "admin.discard": "放弃修改",
  "admin.theirAudit": "审计",
  "admin.allVCs": "全部",
  "admin.storages": "存储",
  "admin.externalGroups": "另外通过登录提供方属于：{names}。",
  "admin.disable": "禁用",
  "admin.disableHint": "被禁用的用户无法登录，其令牌会被拒绝。",
  "admin.removePerson": "移除用户",
  "admin.removeHint": "其任务将被停止。其密码、令牌和任务模板将被删除且无法恢复。名称仍被占用，因为任务使用它。",
  "admin.askRemove": "移除 {name}？",
  "admin.removed": "已移除 {name}。",
  "admin.oldPassword": "您当前的密码",
  "admin.newPassword": "新密码",
  "admin.newPasswordHint": "该用户的所有会话将结束。应用令牌仍然有效。",
  "admin.setPassword": "设置密码",
  "admin.passwordSet": "密码已设置。",
  "admin.tokens": "令牌和会话",
  "admin.noTokens": "没有令牌。",
  "admin.kind.session": "paictl 会话",
  "admin.kind.browser": "浏览器",
  "admin.kind.application": "应用令牌",
  "admin.used": "使用于",
  "admin.thisSession": "（当前会话）",
  "admin.revoke": "吊销",
  "admin.revokeAll": "全部吊销",
  "admin.revokeHint": "使用它的请求将在一秒内被拒绝。",
  "admin.revokeOwn": "您自己的会话也会结束，之后请重新登录。",
  "admin.revoked": "已吊销。",
  "admin.askRevoke": "吊销 {name}？",
  "admin.askRevokeAll": "吊销 {name} 的所有令牌和会话？",
  "admin.addGroup": "添加组",
  "admin.searchGroups": "搜索组",
  "admin.noGroup": "没有符合条件的组。",
  "admin.members": "成员",
  "admin.pages": "页面",
  "admin.allPages": "全部",
  "admin.description": "描述",
  "admin.grantsAdministration": "成员是管理员",
  "admin.grantsAdministrationHint": "除使用存储外，可以进行所有操作。",
  "admin.grantsAllVCs": "成员可以使用所有虚拟集群，包括之后新建的",
  "admin.seeJobs": "互相可见任务",
  "admin.hostNetwork": "使用主机网络",
  "admin.maxPriority": "最高优先级",
  "admin.upTo": "最高 {name}",
  "admin.addVCTo": "授予虚拟集群…",
  "admin.storagesHint": "第一个是该组的默认存储。",
  "admin.addStorage": "添加存储",
  "admin.page.monitoring": "监控",
  "admin.page.alerts": "告警",
  "admin.page.monitoring-write": "静默告警",
  "admin.external": "登录提供方的组",
  "admin.externalHint": "这些组的成员也是该组的成员。",
  "admin.askDeleteGroup": "删除组 {name}？",
  "admin.deleteGroupHint": "其 {n} 个成员将失去它授予的权限。",
  "admin.addMember": "添加成员…",
  "admin.noMembers": "该组没有成员。",
  "admin.removeMember": "移除",
  "admin.byProvider": "来自提供方",
  "admin.memberAdded": "{name} 已加入 {group}。",
  "admin.memberRemoved": "{name} 已离开 {group}。",
  "admin.addVC": "添加虚拟集群",
  "admin.searchVCs": "搜索虚拟集群",
  "admin.noVC": "没有虚拟集群。",
  "admin.noSuchVC": "虚拟集群 {name} 不存在。",
  "admin.vcExists": "虚拟集群 {name} 已存在，此操作将修改它。",
  "admin.pinnedCell": "固定 {id}",
  "admin.perUser": "每用户 {n}",
  "admin.perGroup": "每组 {n}",
  "admin.guaranteed": "保障",
  "admin.inUse": "使用中",
  "admin.free": "空闲",
  "admin.waiting": "等待",
  "admin.broken": "故障",
  "admin.lent": "机会性",
  "admin.cells": "单元",
  "admin.quota": "配额",
  "admin.oldConfiguration": "调度器拒绝了最新的配置，仍使用较早的配置：{why}",
  "admin.deletedVCs": "已删除，但仍有任务在运行：{names}",
  "admin.cellType": "单元类型",
  "admin.number": "数量",
  "admin.cellsHint": "它拥有的机器或机器的一部分。0 表示移除该类型。",
  "admin.cpuCells": "CPU 单元",
  "admin.takeFrom": "与之交换单元",
  "admin.takeFromNone": "无其他虚拟集群",
  "admin.takeFromHint": "它失去本虚拟集群得到的单元，得到本虚拟集群失去的单元。",
  "admin.quotaPerUser": "每用户 GPU 数",
  "admin.quotaPerGroup": "每组 GPU 数",
  "admin.noLimit": "0 表示不限。",
  "admin.quotaUsers": "特定用户的配额",
  "admin.quotaGroups": "特定组的配额",
  "admin.person": "用户",
  "admin.policy": "抢占策略",
  "admin.policy.balanced": "所有任务的等待都较短。",
  "admin.policy.fewer-kills": "较少抢占机会性任务，但它们等待更久。",
  "admin.policy.start-now": "有空间时机会性任务立即启动，但更常被抢占。",
  "admin.preview": "预览",
  "admin.previewAgain": "重新预览",
  "admin.previewHint": "修改后可预览其影响。应用之前不会保存任何内容。",
  "admin.ownsNow": "当前拥有",
  "admin.ownsThen": "将拥有",
  "admin.jobsAffected": "受影响的任务：{n}",
  "admin.noJobAffected": "没有任务受影响。",
  "admin.diff": "配置的变化",
  "admin.effect.downgraded": "失去保障：继续运行，但单元的所有者可以抢占它。",
  "admin.effect.restored": "重新获得保障。",
  "admin.effect.refused": "正在等待，且将永远无法启动。",
  "admin.effect.orphaned": "在没有保障的情况下继续运行；重试会被拒绝。",
  "admin.nothingChanges": "无需修改：修订 {n} 已有这些值。",
  "admin.pending": "修订 {n} 已有这些值，但调度器尚未加载。",
  "admin.invalid": "调度器会拒绝此修改。",
  "admin.reason": "原因",
  "admin.reasonHint": "将保存在配置的历史中。",
  "admin.force": "即使其中有任务也应用",
  "admin.forceHint": "运行中的任务在没有保障的情况下继续，等待中的任务永远无法启动。",
  "admin.apply": "应用到修订 {n}",
  "admin.stored": "已保存修订 {n}。",
  "admin.storedAndLoaded": "已保存修订 {n}，调度器正在加载。",
  "admin.storedOnly": "已保存修订 {n}。执行以下命令后生效：paictl service start -n scheduler",
  "admin.deleteVC": "删除 {name}",
  "admin.deleteVCHint": "预览会列出将失去虚拟集群的任务。",
  "admin.heir": "其单元归于",
  "admin.noHeir": "无虚拟集群",
  "admin.keep": "保留",
  "admin.searchServices": "搜索服务",
  "admin.trouble": "需要关注",
  "admin.pods": "Pod",
  "admin.release": "发布",
  "admin.configuration": "配置",
  "admin.updated": "更新时间",
  "admin.current": "最新",
  "admin.noService": "没有服务。",
  "admin.noServiceHere": "没有符合条件的服务。",
  "admin.andMore": "另有 {n} 个",
  "admin.noProblems": "没有问题。",
  "admin.namespace": "命名空间",
  "admin.chart": "Chart",
  "admin.revision": "修订",
  "admin.installedBy": "安装者",
  "admin.serviceCommands": "服务器不管理服务。请使用 kubeconfig 运行：",
  "admin.service.ready": "就绪",
  "admin.service.starting": "启动中",
  "admin.service.failed": "失败",
  "admin.service.stopped": "已停止",
  "admin.service.not installed": "未安装",
  "admin.service.disabled": "已禁用",
  "admin.service.orphan": "不在配置中",
  "admin.service.unknown": "未知",
  "admin.alert": "告警",
  "admin.severity": "级别",
  "admin.severity.critical": "严重",
  "admin.severity.warning": "警告",
  "admin.severity.info": "信息",
  "admin.severity.silenced": "已静默",
  "admin.since": "开始于",
  "admin.summary": "摘要",
  "admin.runbook": "处理手册",
  "admin.noAlert": "没有告警。",
  "admin.noAlertHere": "没有符合条件的告警。",
  "admin.alertsMissing": "无法获取告警：{why}",
  "admin.actor": "用户",
  "admin.verb": "操作",
  "admin.kind": "类型",
  "admin.from": "从",
  "admin.until": "到",
  "admin.outcome": "结果",
  "admin.outcome.done": "完成",
  "admin.outcome.refused": "被拒绝",
  "admin.outcome.failed": "失败",
  "admin.anyTime": "任意时间",
  "admin.last.1h": "1 小时",
  "admin.last.24h": "1 天",
  "admin.last.7d": "7 天",
  "admin.last.30d": "30 天",
  "admin.noRecord": "审计中还没有记录。",
  "admin.noRecordHere": "没有符合筛选条件的记录。",
  "admin.records": "{n} 条记录",
  "admin.olderRecords": "显示更早的记录",
  "admin.csvCut": "文件包含最近的 {n} 条记录。选择更短的时间以获取其他记录。",
  "admin.status": "状态码",
  "admin.token": "令牌",
  "admin.request": "请求",
  "admin.actorUID": "用户的 UID",
  "admin.record": "记录",
  editorHelp: "Ctrl 空格 补全。按 Escape 再按 Tab 离开编辑器。",
  plainEditor: "无法加载编辑器。重新加载页面可再次尝试；此文本框仍可使用。",
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
  "shell.opening": "连接中…",
  "shell.open": "已连接。Ctrl F6 离开终端。",
  "shell.ended": "Shell 已结束，状态码 {code}。",
  "shell.cut": "连接已结束。实例可能已结束，或者服务器已重启。",
  "shell.again": "再打开一个",
  "shell.none": "该任务目前没有运行中的实例。终端只能在运行中的实例里打开。",
  "shell.failed": "无法加载终端。请重新加载页面。",
  "shell.skipped": "输出过快，已跳过 {n} 字节。",
  "shell.keys": "按键",
  paste: "粘贴",
  pasteKeys: "浏览器不允许页面读取剪贴板。请在终端中按 Ctrl Shift V。",
  backToJob: "返回任务",
  "key.complete": "在编辑器中补全",
  "key.leave": "离开终端"
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
function t(key2, values = {}) {
  return known[language.value][key2].replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}
function maybe(key2, fallback) {
  return key2 in en ? t(key2) : fallback;
}

// pkg/portal/web/src/api.ts
var Failure = class extends Error {
  constructor(status2, code, message, remedy = "", request = "", findings = []) {
    super(message);
    this.status = status2;
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
function addressOf(route, args2) {
  let path = route.slice(route.indexOf(" ") + 1);
  for (const [name, value] of Object.entries(args2.path ?? {})) path = path.replace(`{${name}}`, encodeURIComponent(value));
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(args2.query ?? {})) {
    if (value === void 0 || value === "" || value === false || Array.isArray(value) && value.length === 0) continue;
    q.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  const text2 = q.toString();
  return base + path.slice(1) + (text2 ? "?" + text2 : "");
}
async function call(route, args2) {
  const answer = await ask(route, args2, args2.signal);
  return await answer.json();
}
async function ask(route, args2, stop, more = {}) {
  const headers = { ...more };
  if (args2.body !== void 0) headers["Content-Type"] = "application/json";
  if (args2.key) headers["Idempotency-Key"] = args2.key;
  const method = route.slice(0, route.indexOf(" "));
  const body = args2.body === void 0 ? void 0 : JSON.stringify(args2.body);
  const r = await fetch(addressOf(route, args2), { method, headers, body, signal: stop, credentials: "same-origin" });
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
      const { done: done2, value } = await reader.read();
      if (done2) break;
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
async function frames(route, args2, stop, take) {
  const r = await ask(route, args2, stop);
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
  return lasting(stop, async (alive2) => {
    const r = await ask("GET /api/v3/jobs/watch", { query }, stop, last ? { "Last-Event-ID": last } : {});
    alive2();
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
function watchStatus(parts, stop, whole, changed2) {
  return lasting(stop, async (alive2) => {
    const r = await ask("GET /api/v3/status/watch", { query: { parts } }, stop);
    alive2();
    for await (const e of events(r)) {
      if (e.name === "snapshot") whole(JSON.parse(e.data));
      else if (e.name === "change") changed2(JSON.parse(e.data));
      else if (e.name === "end") throw problem(e.data);
    }
    throw new Failure(0, "NoAnswer", t("cut"));
  });
}
function problem(data) {
  const e = JSON.parse(data);
  return new Failure(e.code === "UnauthorizedUserError" ? 401 : 503, e.code, e.message, e.remedy, e.request);
}

// pkg/portal/web/src/keys.ts
import { signal as signal4 } from "./library.js";
import { useEffect } from "./library.js";
var pages = [];
var help = signal4(false);
var before = "";
var all = [
  ["/", "key.search"],
  ["j  ↓", "key.next"],
  ["k  ↑", "key.prev"],
  ["Enter", "key.open"],
  ["1 – 6", "key.tabs"],
  ["Ctrl Enter", "key.send"],
  ["Ctrl Space", "key.complete"],
  ["Ctrl F6", "key.leave"],
  ["g h", "key.home"],
  ["g j", "key.jobs"],
  ["g m", "key.machines"],
  ["g t", "key.templates"],
  ["g u", "key.usage"],
  ["n", "key.submit"],
  ["?", "key.help"]
];
var everywhere = {
  "g h": () => go(address([])),
  "g j": () => go(address(["jobs"])),
  "g m": () => go(address(["machines"])),
  "g t": () => go(address(["templates"])),
  "g u": () => go(address(["usage"])),
  n: () => go(address(["submit"])),
  "?": () => help.value = !help.value
};
function listen() {
  addEventListener("keydown", (e) => {
    const at = e.target;
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]") || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable) return;
    const two = before + " " + e.key;
    before = e.key;
    for (const keys2 of [...pages].reverse().concat(everywhere)) {
      const act = keys2[two] ?? keys2[e.key];
      if (act) {
        if (e.key === "Enter" && at !== document.body) return;
        e.preventDefault();
        before = "";
        act(e);
        return;
      }
    }
  });
}
function useKeys(keys2) {
  useEffect(() => {
    pages.push(keys2);
    return () => void pages.splice(pages.indexOf(keys2), 1);
  });
}

// pkg/portal/web/src/ui.tsx
import { signal as signal6, useSignal } from "./library.js";
import { useEffect as useEffect2, useRef } from "./library.js";

// pkg/portal/web/src/time.ts
import { signal as signal5 } from "./library.js";
var now = signal5(Date.now());
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
var toasts = signal6([]);
var toastId = 0;
function toast(text2) {
  const id = ++toastId;
  toasts.value = [...toasts.value, { id, text: text2 }];
  setTimeout(() => toasts.value = toasts.value.filter((x) => x.id !== id), 4e3);
}
function Toasts() {
  return /* @__PURE__ */ jsx("div", { class: "toasts", role: "status", "aria-live": "polite", children: toasts.value.map((x) => /* @__PURE__ */ jsx("div", { class: "toast", children: x.text }, x.id)) });
}
async function copy(text2) {
  try {
    await navigator.clipboard.writeText(text2);
    toast(t("copied"));
  } catch {
    toast(text2);
  }
}
function Copied({ text: text2, children }) {
  return /* @__PURE__ */ jsx("button", { type: "button", class: "bare", title: t("copy"), onClick: () => void copy(text2), children });
}
function save(name, parts, type) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob(parts, { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1e4);
}
function Menu({ label, icon: icon2, items, children }) {
  const open = useSignal(false);
  const box = useRef(null);
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
  const keys2 = (e) => {
    const all2 = [...box.current?.querySelectorAll("[role=menuitem]") ?? []];
    const at = all2.indexOf(document.activeElement);
    if (e.key === "Escape" && open.value) {
      open.value = false;
      (box.current?.querySelector("button")).focus();
      e.stopPropagation();
    } else if (open.value && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
      all2[(at + (e.key === "ArrowDown" ? 1 : all2.length - 1)) % all2.length]?.focus();
      e.preventDefault();
      e.stopPropagation();
    }
  };
  return /* @__PURE__ */ jsxs("div", { class: "menu", ref: box, onKeyDown: keys2, children: [
    /* @__PURE__ */ jsxs("button", { type: "button", class: children ? "" : "square", "aria-haspopup": "menu", "aria-expanded": open.value, "aria-label": children ? void 0 : label, title: label, onClick: () => open.value = !open.value, children: [
      icon2 ? /* @__PURE__ */ jsx(Icon, { name: icon2 }) : null,
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
var question = signal6(null);
function ask2(q) {
  question.value = q;
}
function Asking() {
  const q = question.value;
  const busy = useSignal(false);
  const error = useSignal(null);
  const box = useRef(null);
  useEffect2(() => {
    error.value = null;
    if (q) box.current?.showModal();
  }, [q]);
  if (!q) return null;
  const end = () => {
    box.current?.close();
    question.value = null;
  };
  const act = async () => {
    busy.value = true;
    try {
      await q.act();
      end();
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsx("dialog", { ref: box, onCancel: end, onClick: (e) => e.target === box.current && end(), "aria-labelledby": "asked", children: /* @__PURE__ */ jsxs("div", { class: "dialog", children: [
    /* @__PURE__ */ jsx("h2", { id: "asked", children: q.title }),
    /* @__PURE__ */ jsx("p", { children: q.text }),
    error.value ? /* @__PURE__ */ jsx(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsxs("div", { class: "buttons", children: [
      /* @__PURE__ */ jsx("button", { type: "button", onClick: end, children: t("cancel") }),
      /* @__PURE__ */ jsx("button", { type: "button", class: q.danger ? "primary danger" : "primary", disabled: busy.value, onClick: () => void act(), children: q.yes })
    ] })
  ] }) });
}
function Loading() {
  return /* @__PURE__ */ jsx("p", { class: "loading faint", children: t("loading") });
}
function Bar({ parts, total, label }) {
  return /* @__PURE__ */ jsx("div", { class: "bar", role: "img", "aria-label": label, title: label, children: parts.map((p) => p.n > 0 ? /* @__PURE__ */ jsx("i", { class: p.class, style: { width: `${100 * p.n / Math.max(total, 1)}%` } }, p.class) : null) });
}

// pkg/portal/web/src/admin-parts.tsx
import { Fragment as Fragment2, jsx as jsx2, jsxs as jsxs2 } from "./library.js";
var some = 200;
function useRead(key2, read3, every = 0) {
  const value = useSignal2(null);
  const error = useSignal2(null);
  const round2 = useSignal2(0);
  const last = useRef2(key2);
  useEffect3(() => {
    const stop = new AbortController();
    let timer = 0;
    if (last.current !== key2) {
      last.current = key2;
      value.value = null;
    }
    const ask3 = async () => {
      if (!document.hidden || !value.value) {
        try {
          const v = await read3(stop.signal);
          if (stop.signal.aborted) return;
          value.value = v;
          error.value = null;
        } catch (e) {
          if (stop.signal.aborted) return;
          error.value = failure(e);
        }
      }
      if (every > 0) timer = setTimeout(() => void ask3(), every);
    };
    void ask3();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key2, round2.value]);
  return { value, error, again: () => void round2.value++ };
}
function useAct() {
  const busy = useSignal2(false);
  const error = useSignal2(null);
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
function Top({ title, up, children, paictl, curl: curl2 }) {
  useEffect3(() => {
    document.title = title + " – paictl";
  }, [title]);
  return /* @__PURE__ */ jsxs2("header", { class: "top", children: [
    up ? /* @__PURE__ */ jsxs2("nav", { class: "crumbs", children: [
      /* @__PURE__ */ jsx2("a", { href: address(["admin", up[0]]), children: up[1] }),
      /* @__PURE__ */ jsx2(Icon, { name: "chevron" })
    ] }) : null,
    /* @__PURE__ */ jsx2("h1", { title, children: title }),
    /* @__PURE__ */ jsx2("span", { class: "grow" }),
    /* @__PURE__ */ jsx2(
      Menu,
      {
        label: t("more"),
        icon: "more",
        items: [
          { label: t("copyPaictl"), icon: "copy", run: () => void copy(paictl) },
          { label: t("copyCurl"), icon: "copy", run: () => void copy(curl2) },
          { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
        ]
      }
    ),
    children
  ] });
}
function Search({ label, of = "keyword", value }) {
  const field = useRef2(null);
  const timer = useRef2(0);
  useKeys({ "/": () => field.current?.focus() });
  useEffect3(() => {
    if (document.activeElement !== field.current) field.current.value = value;
  }, [value]);
  const typed = (text2) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ [of]: text2 || void 0 }), 200);
  };
  return /* @__PURE__ */ jsxs2("label", { class: "search", children: [
    /* @__PURE__ */ jsx2(Icon, { name: "search" }),
    /* @__PURE__ */ jsx2("input", { ref: field, type: "search", placeholder: label, "aria-label": label, defaultValue: value, onInput: (e) => typed(e.currentTarget.value), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
    /* @__PURE__ */ jsx2("kbd", { children: "/" })
  ] });
}
function Segments({ label, of, value, choices: choices2 }) {
  return /* @__PURE__ */ jsx2("div", { class: "segments", role: "group", "aria-label": label, children: choices2.map(([name, text2]) => /* @__PURE__ */ jsx2("button", { type: "button", "aria-pressed": value === name, onClick: () => setQuery({ [of]: name || void 0 }), children: text2 }, name)) });
}
var fields = 0;
function Field({ label, hint, children }) {
  const id = useRef2("");
  id.current ||= "field-" + ++fields;
  return /* @__PURE__ */ jsxs2("div", { class: "field", children: [
    /* @__PURE__ */ jsx2("label", { for: id.current, children: label }),
    children(id.current),
    hint ? /* @__PURE__ */ jsx2("small", { children: hint }) : null
  ] });
}
function Line({ label, hint, value, set, type = "text", required }) {
  return /* @__PURE__ */ jsx2(Field, { label, hint, children: (id) => /* @__PURE__ */ jsx2("input", { id, type, value, required, autocomplete: type === "password" ? "new-password" : "off", spellcheck: false, onInput: (e) => set(e.currentTarget.value) }) });
}
function Tick({ label, hint, value, set, disabled }) {
  return /* @__PURE__ */ jsxs2("label", { class: "tick", children: [
    /* @__PURE__ */ jsx2("input", { type: "checkbox", checked: value, disabled, onChange: (e) => set(e.currentTarget.checked) }),
    /* @__PURE__ */ jsxs2("span", { children: [
      label,
      hint ? /* @__PURE__ */ jsx2("small", { children: hint }) : null
    ] })
  ] });
}
function Names({ label, hint, value, all: all2, set, add }) {
  const more = (name) => {
    if (name && !value.includes(name)) set([...value, name]);
  };
  const rest = all2?.filter((x) => !value.includes(x));
  return /* @__PURE__ */ jsx2(Field, { label, hint, children: (id) => /* @__PURE__ */ jsxs2("div", { class: "names", children: [
    value.map((name) => /* @__PURE__ */ jsxs2("span", { class: "tag", children: [
      name,
      /* @__PURE__ */ jsx2("button", { type: "button", class: "bare", "aria-label": t("admin.removeName", { name }), title: t("admin.removeName", { name }), onClick: () => set(value.filter((x) => x !== name)), children: /* @__PURE__ */ jsx2(Icon, { name: "close" }) })
    ] }, name)),
    rest ? /* @__PURE__ */ jsxs2(
      "select",
      {
        id,
        value: "",
        disabled: rest.length === 0,
        onChange: (e) => {
          more(e.currentTarget.value);
          e.currentTarget.value = "";
        },
        children: [
          /* @__PURE__ */ jsx2("option", { value: "", children: add }),
          rest.map((x) => /* @__PURE__ */ jsx2("option", { value: x, children: x }, x))
        ]
      }
    ) : /* @__PURE__ */ jsx2(
      "input",
      {
        id,
        placeholder: add,
        autocomplete: "off",
        spellcheck: false,
        onChange: (e) => {
          more(e.currentTarget.value.trim());
          e.currentTarget.value = "";
        },
        onKeyDown: (e) => {
          if (e.key !== "Enter") return;
          e.preventDefault();
          e.currentTarget.dispatchEvent(new Event("change"));
        }
      }
    )
  ] }) });
}
function Pairs({ label, hint, value, set, second }) {
  const change = (i, pair) => set(value.map((x, j) => j === i ? pair : x));
  return /* @__PURE__ */ jsxs2("div", { class: "field", role: "group", "aria-label": label, children: [
    /* @__PURE__ */ jsx2("span", { class: "label", children: label }),
    value.map((pair, i) => /* @__PURE__ */ jsxs2("div", { class: "pair", children: [
      /* @__PURE__ */ jsx2("input", { "aria-label": t("admin.provider"), placeholder: t("admin.provider"), value: pair[0], autocomplete: "off", spellcheck: false, onInput: (e) => change(i, [e.currentTarget.value, pair[1]]) }),
      /* @__PURE__ */ jsx2("input", { "aria-label": second, placeholder: second, value: pair[1], autocomplete: "off", spellcheck: false, onInput: (e) => change(i, [pair[0], e.currentTarget.value]) }),
      /* @__PURE__ */ jsx2("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: pair.join("/") }), title: t("admin.removeName", { name: pair.join("/") }), onClick: () => set(value.filter((_, j) => j !== i)), children: /* @__PURE__ */ jsx2(Icon, { name: "close" }) })
    ] }, i)),
    /* @__PURE__ */ jsx2("div", { children: /* @__PURE__ */ jsx2("button", { type: "button", class: "link", onClick: () => set([...value, ["", ""]]), children: t("admin.addPair") }) }),
    hint ? /* @__PURE__ */ jsx2("small", { children: hint }) : null
  ] });
}
function Command({ lines: lines3, why }) {
  if (lines3.length === 0) return null;
  return /* @__PURE__ */ jsxs2("div", { class: "command", children: [
    why ? /* @__PURE__ */ jsx2("p", { class: "faint small", children: why }) : null,
    lines3.map((line) => /* @__PURE__ */ jsxs2(Copied, { text: line, children: [
      /* @__PURE__ */ jsx2("code", { children: line }),
      /* @__PURE__ */ jsx2(Icon, { name: "copy" })
    ] }, line))
  ] });
}
function Refusal({ of, again }) {
  if (!of) return null;
  return /* @__PURE__ */ jsxs2(Fragment2, { children: [
    /* @__PURE__ */ jsx2(Problem, { of }),
    of.status === 409 ? /* @__PURE__ */ jsxs2("p", { class: "note", children: [
      t("admin.conflict"),
      " ",
      /* @__PURE__ */ jsx2("button", { type: "button", onClick: again, children: t("admin.readAgain") })
    ] }) : null
  ] });
}
function rebased(draft, was, now2) {
  const out = { ...now2 };
  for (const k of Object.keys(now2)) if (!same(draft[k], was[k])) out[k] = draft[k];
  return out;
}
function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
function More({ n, most: most5 }) {
  return n > most5.value ? /* @__PURE__ */ jsxs2("footer", { class: "under", children: [
    /* @__PURE__ */ jsx2("span", { class: "faint", children: t("admin.shownOf", { n: most5.value, all: n }) }),
    /* @__PURE__ */ jsx2("button", { type: "button", onClick: () => most5.value += 1e3, children: t("admin.showMore") })
  ] }) : null;
}

// pkg/portal/web/src/list.ts
import { signal as signal7 } from "./library.js";
function newestFirst(a, b) {
  const by = Date.parse(b.submitted) - Date.parse(a.submitted);
  return by || (b.uid < a.uid ? -1 : b.uid > a.uid ? 1 : 0);
}
function list(filter, limit) {
  const stop = new AbortController();
  const known2 = /* @__PURE__ */ new Map();
  const out = { rows: signal7(null), next: signal7(""), note: signal7(""), error: signal7(null), older, end: () => stop.abort() };
  let waiting = false;
  const draw2 = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      out.rows.value = [...known2.values()].sort(newestFirst);
    });
  };
  const last = () => out.rows.value?.at(-1);
  watchJobs({ ...filter, limit }, stop.signal, {
    whole(rows, next, note) {
      known2.clear();
      for (const r of rows) known2.set(r.uid, r);
      out.next.value = next;
      out.note.value = note;
      draw2();
    },
    changed(row) {
      const end = last();
      if (!known2.has(row.uid) && out.next.value && end && newestFirst(row, end) > 0) return;
      known2.set(row.uid, row);
      draw2();
    },
    gone(uid) {
      if (known2.delete(uid)) draw2();
    }
  }).catch((e) => {
    if (!stop.signal.aborted) out.error.value = failure(e);
  });
  async function older() {
    const page = await call("GET /api/v3/jobs", { query: { ...filter, limit, cursor: out.next.value }, signal: stop.signal });
    for (const r of page.items ?? []) if (!known2.has(r.uid)) known2.set(r.uid, r);
    out.next.value = page.next ?? "";
    out.note.value = page.note ?? "";
    draw2();
  }
  return out;
}
async function everything(filter) {
  const out = [];
  let cursor = "";
  do {
    const page = await call("GET /api/v3/jobs", { query: { ...filter, limit: 5e3, cursor } });
    out.push(...page.items ?? []);
    cursor = page.next ?? "";
  } while (cursor);
  return out;
}
var columns = [
  ["name", (r) => r.name],
  ["user", (r) => r.user],
  ["state", (r) => r.state],
  ["virtualCluster", (r) => r.virtualCluster],
  ["priority", (r) => r.priority],
  ["tasks", (r) => r.tasks],
  ["gpus", (r) => r.gpus < 0 ? "" : r.gpus],
  ["retries", (r) => r.retries],
  ["submitted", (r) => r.submitted],
  ["started", (r) => r.started],
  ["completed", (r) => r.completed],
  ["code", (r) => r.code],
  ["tags", (r) => r.tags?.join(" ")]
];
function csv(rows, columns9) {
  const cell = (v) => {
    let text2 = v === void 0 || v === null ? "" : String(v);
    if (typeof v !== "number") text2 = text2.replace(/(^|[;\t\r\n])(?=\s*[=+\-@])/g, "$1'");
    return /[",\n\r]/.test(text2) ? `"${text2.replaceAll('"', '""')}"` : text2;
  };
  return [columns9.map(([name]) => name).join(","), ...rows.map((r) => columns9.map(([, of]) => cell(of(r))).join(","))].join("\r\n") + "\r\n";
}

// pkg/portal/web/src/shell.ts
function quoted(word) {
  if (/[\u0000-\u001f\u007f]/.test(word)) return "$'" + word.replace(/[\\'\u0000-\u001f\u007f]/g, (c) => "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0")) + "'";
  return /^[A-Za-z0-9_./~:@%+,-][A-Za-z0-9_./~:@%+,=-]*$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}
function curl(route, args2) {
  const method = route.slice(0, route.indexOf(" "));
  const body = args2.body === void 0 ? "" : `-H "Content-Type: application/json" -d ${quoted(JSON.stringify(args2.body))} `;
  return `curl ${method === "GET" ? "" : `-X ${method} `}-H "Authorization: Bearer $PAI_TOKEN" ${body}${quoted(location.origin + addressOf(route, args2))}`;
}

// pkg/portal/web/src/admin-alerts.tsx
import { Fragment as Fragment3, jsx as jsx3, jsxs as jsxs3 } from "./library.js";
var objects = ["node", "instance", "job_name", "pod", "service", "namespace", "gpu", "minor_number"];
var family2 = { critical: "bad", warning: "wait" };
function about(a) {
  return objects.flatMap((k) => a.labels?.[k] ? [`${k}=${a.labels[k]}`] : []).join(" ");
}
function linkable(address2) {
  return /^https?:\/\//i.test(address2 ?? "");
}
var columns2 = [
  ["name", (a) => a.name],
  ["severity", (a) => a.severity],
  ["since", (a) => a.since],
  ["silenced", (a) => a.silenced ?? false],
  ["about", about],
  ["summary", (a) => a.summary],
  ["runbook", (a) => a.runbook]
];
function Alerts() {
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/status", { signal: signal11 }), 15e3);
  const choice = place.value.query.get("severity") ?? "";
  const rows = (value.value?.alerts ?? []).filter((a) => !choice || (choice === "silenced" ? a.silenced : a.severity === choice));
  const source2 = value.value?.sources?.find((s) => s.name === "alerts");
  const missing = source2 && source2.state !== "current";
  return /* @__PURE__ */ jsxs3(Fragment3, { children: [
    /* @__PURE__ */ jsx3(Top, { title: t("admin.tab.alerts"), paictl: "paictl status -o json | jq .alerts", curl: curl("GET /api/v3/status", {}), children: /* @__PURE__ */ jsxs3("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("alerts.csv", [csv(rows, columns2)], "text/csv;charset=utf-8"), children: [
      /* @__PURE__ */ jsx3(Icon, { name: "down" }),
      " ",
      t("csv")
    ] }) }),
    missing ? null : /* @__PURE__ */ jsx3("div", { class: "filters", children: /* @__PURE__ */ jsx3(Segments, { label: t("admin.severity"), of: "severity", value: choice, choices: [["", t("state.all")], ...["critical", "warning", "info", "silenced"].map((x) => [x, t(`admin.severity.${x}`)])] }) }),
    error.value ? /* @__PURE__ */ jsx3(Problem, { of: error.value, again }) : null,
    missing ? /* @__PURE__ */ jsxs3("p", { class: "note", children: [
      t("admin.alertsMissing", { why: source2.message || source2.state }),
      " ",
      source2.hint ? /* @__PURE__ */ jsx3("span", { class: "faint", children: source2.hint }) : null
    ] }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx3(Loading, {}) : rows.length === 0 ? missing ? null : /* @__PURE__ */ jsx3("p", { class: "empty", children: t(choice ? "admin.noAlertHere" : "admin.noAlert") }) : /* @__PURE__ */ jsxs3("table", { class: "rows alerts", children: [
      /* @__PURE__ */ jsx3("thead", { children: /* @__PURE__ */ jsxs3("tr", { children: [
        /* @__PURE__ */ jsx3("th", { children: t("admin.alert") }),
        /* @__PURE__ */ jsx3("th", { class: "c-time", children: t("admin.since") }),
        /* @__PURE__ */ jsx3("th", { children: t("admin.summary") }),
        /* @__PURE__ */ jsx3("th", { class: "wide", children: t("admin.runbook") })
      ] }) }),
      /* @__PURE__ */ jsx3("tbody", { children: rows.map((a) => /* @__PURE__ */ jsxs3("tr", { children: [
        /* @__PURE__ */ jsxs3("td", { children: [
          /* @__PURE__ */ jsxs3("span", { class: `state ${a.silenced ? "off" : family2[a.severity] ?? "run"}`, children: [
            /* @__PURE__ */ jsx3("i", { class: "dot" }),
            /* @__PURE__ */ jsx3("b", { children: a.name })
          ] }),
          /* @__PURE__ */ jsxs3("div", { class: "faint small", children: [
            maybe("admin.severity." + a.severity, a.severity),
            a.silenced ? ` · ${t("admin.severity.silenced")}` : ""
          ] })
        ] }),
        /* @__PURE__ */ jsx3("td", { class: "c-time", children: /* @__PURE__ */ jsx3(Ago, { time: a.since }) }),
        /* @__PURE__ */ jsxs3("td", { class: "long", children: [
          a.summary,
          about(a) ? /* @__PURE__ */ jsx3("div", { class: "faint small", children: about(a) }) : null
        ] }),
        /* @__PURE__ */ jsx3("td", { class: "wide long", children: linkable(a.runbook) ? /* @__PURE__ */ jsx3("a", { href: a.runbook, target: "_blank", rel: "noreferrer", children: t("admin.runbook") }) : a.runbook })
      ] }, a.name + a.since + JSON.stringify(a.labels))) })
    ] })
  ] });
}

// pkg/portal/web/src/admin-audit.tsx
import { useSignal as useSignal3 } from "./library.js";
import { Fragment as Fragment4 } from "./library.js";
import { useEffect as useEffect4 } from "./library.js";
import { Fragment as Fragment5, jsx as jsx4, jsxs as jsxs4 } from "./library.js";
var size = 50;
var most = 1e5;
var words = ["actor", "object", "owner", "kind", "verb", "outcome"];
var kinds = ["job", "template", "user", "group", "token", "virtual-cluster", "page", "code"];
var verbs = ["submit", "stop", "retry", "scale", "delete", "tag", "enter", "sign-in", "sign-out", "manage", "change", "add", "remove", "revoke"];
var times = ["1h", "24h", "7d", "30d"];
var outcomes = { done: "good", refused: "wait", failed: "bad" };
var units = { h: 36e5, d: 864e5 };
function instant(text2) {
  const m = /^(\d{1,6})([hd])$/.exec(text2);
  const at = m ? Date.now() - Number(m[1]) * units[m[2]] : Date.parse(text2);
  return Number.isNaN(at) ? void 0 : new Date(at).toISOString();
}
function filterOf(q) {
  const out = {};
  for (const k of words) if (q.get(k)) out[k] = q.get(k);
  out.since = instant(q.get("since") ?? "");
  out.until = instant(q.get("until") ?? "");
  return out;
}
function local(text2) {
  const at = Date.parse(text2);
  if (Number.isNaN(at)) return "";
  const d = new Date(at);
  return new Date(at - d.getTimezoneOffset() * 6e4).toISOString().slice(0, 16);
}
var columns3 = [
  ["time", (r) => r.time],
  ["actor", (r) => r.actor],
  ["verb", (r) => r.verb],
  ["kind", (r) => r.kind],
  ["object", (r) => r.object],
  ["owner", (r) => r.owner],
  ["virtualCluster", (r) => r.vc],
  ["outcome", (r) => r.outcome],
  ["status", (r) => r.status],
  ["reason", (r) => r.reason],
  ["address", (r) => r.address],
  ["token", (r) => r.token],
  ["request", (r) => r.request],
  ["detail", (r) => r.detail ? JSON.stringify(r.detail) : ""]
];
function Word({ of, label, list: list2 }) {
  const value = place.value.query.get(of) ?? "";
  return /* @__PURE__ */ jsxs4("label", { class: "word", children: [
    /* @__PURE__ */ jsx4("span", { children: label }),
    /* @__PURE__ */ jsx4(
      "input",
      {
        name: of,
        defaultValue: value,
        list: list2 ? "audit-" + of : void 0,
        autocomplete: "off",
        spellcheck: false,
        onChange: (e) => setQuery({ [of]: e.currentTarget.value.trim() || void 0 })
      },
      value
    ),
    list2 ? /* @__PURE__ */ jsx4("datalist", { id: "audit-" + of, children: list2.map((x) => /* @__PURE__ */ jsx4("option", { value: x }, x)) }) : null
  ] });
}
function Time({ of, label }) {
  const value = place.value.query.get(of) ?? "";
  return /* @__PURE__ */ jsxs4("label", { class: "word", children: [
    /* @__PURE__ */ jsx4("span", { children: label }),
    /* @__PURE__ */ jsx4("input", { type: "datetime-local", defaultValue: local(instant(value) ?? ""), onChange: (e) => setQuery({ [of]: e.currentTarget.value ? new Date(e.currentTarget.value).toISOString() : void 0 }) }, value)
  ] });
}
function Details({ r }) {
  const facts = [
    [t("time"), exact(r.time)],
    [t("reason"), r.reason],
    ...Object.entries(r.detail ?? {}),
    [t("owner"), r.owner],
    [t("vc"), r.vc],
    [t("admin.status"), r.status],
    [t("address"), r.address],
    [t("admin.token"), r.token],
    [t("admin.request"), r.request],
    [t("admin.actorUID"), r.actorUID],
    [t("admin.record"), r.id]
  ];
  return /* @__PURE__ */ jsx4("dl", { class: "open details", children: facts.map(
    ([name, value]) => value ? /* @__PURE__ */ jsxs4("div", { children: [
      /* @__PURE__ */ jsx4("dt", { children: name }),
      /* @__PURE__ */ jsx4("dd", { children: typeof value === "string" && value === r.request ? /* @__PURE__ */ jsx4(Copied, { text: value, children: value }) : value })
    ] }, name) : null
  ) });
}
function pageOf(r) {
  if (!r.object) return null;
  if (r.kind === "job" && r.owner) return ["jobs", r.owner, r.object];
  if (r.kind === "user") return ["admin", "people", r.object];
  if (r.kind === "group") return ["admin", "groups", r.object];
  if (r.kind === "virtual-cluster" && !r.object.includes(",")) return ["admin", "virtual-clusters", r.object];
  return null;
}
function Audit() {
  const q = place.value.query;
  const open = q.get("open");
  const key2 = [...q].filter(([k]) => k !== "open").join("&");
  const rows = useSignal3(null);
  const next = useSignal3("");
  const error = useSignal3(null);
  const busy = useSignal3(false);
  const round2 = useSignal3(0);
  useEffect4(() => {
    const stop = new AbortController();
    busy.value = true;
    call("GET /api/v3/audit", { query: { ...filterOf(q), limit: size }, signal: stop.signal }).then(
      (page) => {
        rows.value = page.items ?? [];
        next.value = page.next ?? "";
        error.value = null;
        busy.value = false;
      },
      (e) => {
        if (stop.signal.aborted) return;
        rows.value = null;
        error.value = failure(e);
        busy.value = false;
      }
    );
    return () => stop.abort();
  }, [key2, round2.value]);
  const more = async () => {
    busy.value = true;
    try {
      const page = await call("GET /api/v3/audit", { query: { ...filterOf(q), limit: size, cursor: next.value } });
      rows.value = [...rows.value ?? [], ...page.items ?? []];
      next.value = page.next ?? "";
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const download = async () => {
    busy.value = true;
    try {
      const filter = filterOf(q);
      const all2 = [];
      let cursor = "";
      do {
        const page = await call("GET /api/v3/audit", { query: { ...filter, limit: 1e3, cursor } });
        all2.push(...page.items ?? []);
        cursor = page.next ?? "";
      } while (cursor && all2.length < most);
      if (cursor) toast(t("admin.csvCut", { n: all2.length }));
      save("audit.csv", [csv(all2, columns3)], "text/csv;charset=utf-8");
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const command2 = ["paictl audit"];
  for (const k of [...words, "since", "until"]) if (q.get(k)) command2.push(`--${k} ${quoted(q.get(k))}`);
  const since2 = q.get("since") ?? "";
  const filtered = key2 !== "";
  return /* @__PURE__ */ jsxs4(Fragment5, { children: [
    /* @__PURE__ */ jsxs4(Top, { title: t("admin.tab.audit"), paictl: command2.join(" "), curl: curl("GET /api/v3/audit", { query: filterOf(q) }), children: [
      /* @__PURE__ */ jsxs4("button", { type: "button", disabled: busy.value, onClick: () => round2.value++, children: [
        /* @__PURE__ */ jsx4(Icon, { name: "retry" }),
        " ",
        t("admin.readAgain")
      ] }),
      /* @__PURE__ */ jsxs4("button", { type: "button", title: t("csvMore"), disabled: busy.value, onClick: () => void download(), children: [
        /* @__PURE__ */ jsx4(Icon, { name: "down" }),
        " ",
        t("csv")
      ] })
    ] }),
    /* @__PURE__ */ jsxs4("div", { class: "filters words", children: [
      /* @__PURE__ */ jsx4(Word, { of: "actor", label: t("admin.actor") }),
      /* @__PURE__ */ jsx4(Word, { of: "verb", label: t("admin.verb"), list: verbs }),
      /* @__PURE__ */ jsx4(Word, { of: "kind", label: t("admin.kind"), list: kinds }),
      /* @__PURE__ */ jsx4(Word, { of: "object", label: t("object") }),
      /* @__PURE__ */ jsx4(Time, { of: "since", label: t("admin.from") }),
      /* @__PURE__ */ jsx4(Time, { of: "until", label: t("admin.until") })
    ] }),
    /* @__PURE__ */ jsxs4("div", { class: "filters", children: [
      /* @__PURE__ */ jsx4(Segments, { label: t("admin.outcome"), of: "outcome", value: q.get("outcome") ?? "", choices: [["", t("state.all")], ...Object.keys(outcomes).map((x) => [x, t(`admin.outcome.${x}`)])] }),
      /* @__PURE__ */ jsx4(Segments, { label: t("time"), of: "since", value: since2, choices: [["", t("admin.anyTime")], ...times.map((x) => [x, t(`admin.last.${x}`)])] }),
      filtered ? /* @__PURE__ */ jsx4("button", { type: "button", onClick: () => go(address(["admin", "audit"])), children: t("clearFilters") }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx4(Problem, { of: error.value, again: () => round2.value++ }) : null,
    !rows.value ? error.value ? null : /* @__PURE__ */ jsx4(Loading, {}) : rows.value.length === 0 ? /* @__PURE__ */ jsx4("p", { class: "empty", children: t(filtered ? "admin.noRecordHere" : "admin.noRecord") }) : /* @__PURE__ */ jsxs4(Fragment5, { children: [
      /* @__PURE__ */ jsxs4("table", { class: "rows audit", "aria-busy": busy.value, children: [
        /* @__PURE__ */ jsx4("thead", { children: /* @__PURE__ */ jsxs4("tr", { children: [
          /* @__PURE__ */ jsx4("th", { class: "c-time", children: t("time") }),
          /* @__PURE__ */ jsx4("th", { children: t("admin.actor") }),
          /* @__PURE__ */ jsx4("th", { children: t("admin.verb") }),
          /* @__PURE__ */ jsx4("th", { children: t("object") }),
          /* @__PURE__ */ jsx4("th", { children: t("admin.outcome") }),
          /* @__PURE__ */ jsx4("th", { class: "wide", children: t("reason") })
        ] }) }),
        /* @__PURE__ */ jsx4("tbody", { children: rows.value.map((r) => {
          const page = pageOf(r);
          return /* @__PURE__ */ jsxs4(Fragment4, { children: [
            /* @__PURE__ */ jsxs4("tr", { children: [
              /* @__PURE__ */ jsx4("td", { class: "c-time c-name", children: /* @__PURE__ */ jsxs4("button", { type: "button", class: "bare whole", "aria-expanded": open === r.id, "aria-label": t("details"), onClick: () => setQuery({ open: open === r.id ? void 0 : r.id }), children: [
                /* @__PURE__ */ jsx4(Icon, { name: open === r.id ? "drop" : "chevron" }),
                " ",
                /* @__PURE__ */ jsx4(Ago, { time: r.time })
              ] }) }),
              /* @__PURE__ */ jsx4("td", { class: "cut", children: r.actor || /* @__PURE__ */ jsx4("span", { class: "faint", children: "–" }) }),
              /* @__PURE__ */ jsx4("td", { children: r.verb }),
              /* @__PURE__ */ jsxs4("td", { class: "cut", children: [
                /* @__PURE__ */ jsx4("span", { class: "faint", children: r.kind }),
                " ",
                page ? /* @__PURE__ */ jsx4("a", { class: "above", href: address(page), children: r.kind === "job" ? `${r.owner}/${r.object}` : r.object }) : r.object
              ] }),
              /* @__PURE__ */ jsx4("td", { children: /* @__PURE__ */ jsxs4("span", { class: `state ${outcomes[r.outcome] ?? "off"}`, children: [
                /* @__PURE__ */ jsx4("i", { class: "dot" }),
                maybe("admin.outcome." + r.outcome, r.outcome)
              ] }) }),
              /* @__PURE__ */ jsx4("td", { class: "wide cut faint", title: r.reason, children: r.reason || Object.entries(r.detail ?? {}).map(([k, v]) => `${k}: ${v}`).join(", ") })
            ] }),
            open === r.id ? /* @__PURE__ */ jsx4("tr", { class: "opened", children: /* @__PURE__ */ jsx4("td", { colSpan: 6, children: /* @__PURE__ */ jsx4(Details, { r }) }) }) : null
          ] }, r.id);
        }) })
      ] }),
      /* @__PURE__ */ jsxs4("footer", { class: "under", children: [
        /* @__PURE__ */ jsx4("span", { class: "faint", children: t("admin.records", { n: rows.value.length }) }),
        next.value ? /* @__PURE__ */ jsx4("button", { type: "button", disabled: busy.value, onClick: () => void more(), children: t("admin.olderRecords") }) : null
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/admin-groups.tsx
import { useSignal as useSignal4 } from "./library.js";
import { useEffect as useEffect5 } from "./library.js";

// pkg/portal/web/src/session.ts
import { signal as signal8 } from "./library.js";
var me = signal8(null);
var pages2 = signal8([]);
var refused = signal8(null);
async function begin() {
  refused.value = null;
  try {
    me.value = await call("GET /api/v3/whoami", {});
  } catch (e) {
    refused.value = failure(e);
    return;
  }
  try {
    pages2.value = (await call("GET /api/v3/session", {})).pages ?? [];
  } catch {
  }
}
async function signOut() {
  await call("DELETE /api/v3/session", {});
  location.assign(base + "sign-in");
}
function ownVCs() {
  return (me.value?.grants.virtualClusters ?? []).map((v) => v.name).sort();
}

// pkg/portal/web/src/admin-groups.tsx
import { Fragment as Fragment6, jsx as jsx5, jsxs as jsxs5 } from "./library.js";
var columns4 = [
  ["name", (g) => g.name],
  ["description", (g) => g.description],
  ["administrator", (g) => g.administrator ?? false],
  ["allVirtualClusters", (g) => g.allVirtualClusters ?? false],
  ["virtualClusters", (g) => g.virtualClusters?.map((v) => v.name).join(" ")],
  ["storages", (g) => g.storages?.join(" ")],
  ["pages", (g) => g.pages?.join(" ")],
  ["members", (g) => g.members?.join(" ")]
];
function Groups() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/groups", { signal: signal11 }));
  const word = (q.get("keyword") ?? "").toLowerCase();
  const rows = (value.value?.items ?? []).filter((g) => !word || [g.name, g.description, ...(g.virtualClusters ?? []).map((v) => v.name), ...g.storages ?? [], ...g.members ?? []].join("\n").toLowerCase().includes(word));
  return /* @__PURE__ */ jsxs5(Fragment6, { children: [
    /* @__PURE__ */ jsxs5(Top, { title: t("admin.tab.groups"), paictl: "paictl group list", curl: curl("GET /api/v3/groups", {}), children: [
      /* @__PURE__ */ jsxs5("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("groups.csv", [csv(rows, columns4)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx5(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs5("a", { class: "button primary", href: address(["admin", "groups"], { add: "true" }), children: [
        /* @__PURE__ */ jsx5(Icon, { name: "plus" }),
        " ",
        t("admin.addGroup")
      ] })
    ] }),
    /* @__PURE__ */ jsx5("div", { class: "filters", children: /* @__PURE__ */ jsx5(Search, { label: t("admin.searchGroups"), value: q.get("keyword") ?? "" }) }),
    error.value ? /* @__PURE__ */ jsx5(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx5(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx5("p", { class: "empty", children: t("admin.noGroup") }) : /* @__PURE__ */ jsxs5("table", { class: "rows groups", children: [
      /* @__PURE__ */ jsx5("thead", { children: /* @__PURE__ */ jsxs5("tr", { children: [
        /* @__PURE__ */ jsx5("th", { children: t("name") }),
        /* @__PURE__ */ jsx5("th", { class: "num", children: t("admin.members") }),
        /* @__PURE__ */ jsx5("th", { children: t("vcs") }),
        /* @__PURE__ */ jsx5("th", { class: "wide", children: t("admin.storages") }),
        /* @__PURE__ */ jsx5("th", { class: "wide", children: t("admin.pages") })
      ] }) }),
      /* @__PURE__ */ jsx5("tbody", { children: rows.map((g) => /* @__PURE__ */ jsxs5("tr", { children: [
        /* @__PURE__ */ jsxs5("td", { class: "c-name", children: [
          /* @__PURE__ */ jsx5("a", { class: "whole", href: address(["admin", "groups", g.name]), children: g.name }),
          g.administrator ? /* @__PURE__ */ jsx5("span", { class: "tag strong", children: t("admin.administrators") }) : null,
          g.description ? /* @__PURE__ */ jsx5("div", { class: "faint small cut", children: g.description }) : null
        ] }),
        /* @__PURE__ */ jsx5("td", { class: "num", children: g.members?.length ?? 0 }),
        /* @__PURE__ */ jsx5("td", { class: "long", children: g.administrator || g.allVirtualClusters ? t("admin.allVCs") : g.virtualClusters?.map((v) => v.name).join(", ") || /* @__PURE__ */ jsx5("span", { class: "faint", children: "–" }) }),
        /* @__PURE__ */ jsx5("td", { class: "wide long", children: g.storages?.join(", ") || /* @__PURE__ */ jsx5("span", { class: "faint", children: "–" }) }),
        /* @__PURE__ */ jsx5("td", { class: "wide long", children: g.administrator ? t("admin.allPages") : g.pages?.join(", ") || /* @__PURE__ */ jsx5("span", { class: "faint", children: "–" }) })
      ] }, g.name)) })
    ] })
  ] });
}
var pages3 = ["monitoring", "alerts", "monitoring-write"];
var priorities = ["oppo", "test", "prod", "crit"];
function draftOf(s) {
  return {
    description: s.description ?? "",
    administrator: s.administrator ?? false,
    allVirtualClusters: s.allVirtualClusters ?? false,
    virtualClusters: s.virtualClusters ?? [],
    storages: s.storages ?? [],
    pages: s.pages ?? [],
    external: (s.external ?? []).map((x) => [x.provider, x.name])
  };
}
function specOf(base2, d) {
  return {
    ...base2,
    description: d.description || void 0,
    administrator: d.administrator || void 0,
    allVirtualClusters: d.allVirtualClusters || void 0,
    virtualClusters: d.virtualClusters,
    storages: d.storages,
    pages: d.pages,
    external: d.external.filter((x) => x[0] || x[1]).map(([provider, name]) => ({ provider, name }))
  };
}
function grantText(v) {
  const options = [v.seeJobs ? "see-jobs" : "", v.hostNetwork ? "host-network" : "", v.maxPriority ?? ""].filter(Boolean).join(",");
  return quoted(v.name + (options ? "=" + options : ""));
}
function args(was, now2) {
  const out = [];
  if (was.description !== now2.description) out.push("--description " + quoted(now2.description));
  if (was.administrator !== now2.administrator) out.push(now2.administrator ? "--administrator" : "--administrator=false");
  if (was.allVirtualClusters !== now2.allVirtualClusters) out.push(now2.allVirtualClusters ? "--all-vcs" : "--all-vcs=false");
  for (const v of now2.virtualClusters) if (!was.virtualClusters.some((x) => same(grantText(x), grantText(v)))) out.push("--add-vc " + grantText(v));
  for (const v of was.virtualClusters) if (!now2.virtualClusters.some((x) => x.name === v.name)) out.push("--remove-vc " + quoted(v.name));
  const list2 = (flag, a, b) => {
    for (const x of b) if (!a.includes(x)) out.push(`--add-${flag} ${quoted(x)}`);
    for (const x of a) if (!b.includes(x)) out.push(`--remove-${flag} ${quoted(x)}`);
  };
  list2("storage", was.storages, now2.storages);
  list2("page", was.pages, now2.pages);
  const text2 = (d) => d.external.filter((x) => x[0] && x[1]).map((x) => x.join("/"));
  list2("external", text2(was), text2(now2));
  return out;
}
function Form({ d, put }) {
  const { value } = useRead("", (signal11) => call("GET /api/v3/virtual-clusters", { signal: signal11 }));
  const vcs = [.../* @__PURE__ */ new Set([...ownVCs(), ...(value.value?.items ?? []).map((v) => v.name)])].sort();
  const change = (i, part) => put({ virtualClusters: d.virtualClusters.map((v, j) => j === i ? { ...v, ...part } : v) });
  const left = vcs.filter((v) => !d.virtualClusters.some((x) => x.name === v));
  return /* @__PURE__ */ jsxs5(Fragment6, { children: [
    /* @__PURE__ */ jsx5(Line, { label: t("admin.description"), value: d.description, set: (v) => put({ description: v }) }),
    /* @__PURE__ */ jsx5(Tick, { label: t("admin.grantsAdministration"), hint: t("admin.grantsAdministrationHint"), value: d.administrator, set: (v) => put({ administrator: v }) }),
    /* @__PURE__ */ jsx5(Tick, { label: t("admin.grantsAllVCs"), value: d.allVirtualClusters, set: (v) => put({ allVirtualClusters: v }) }),
    /* @__PURE__ */ jsxs5("div", { class: "field", role: "group", "aria-label": t("vcs"), children: [
      /* @__PURE__ */ jsx5("span", { class: "label", children: t("vcs") }),
      d.virtualClusters.map((v, i) => /* @__PURE__ */ jsxs5("div", { class: "grant", children: [
        /* @__PURE__ */ jsx5("b", { children: v.name }),
        /* @__PURE__ */ jsx5("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: v.name }), title: t("admin.removeName", { name: v.name }), onClick: () => put({ virtualClusters: d.virtualClusters.filter((_, j) => j !== i) }), children: /* @__PURE__ */ jsx5(Icon, { name: "close" }) }),
        /* @__PURE__ */ jsx5(Tick, { label: t("admin.seeJobs"), value: v.seeJobs ?? false, set: (x) => change(i, { seeJobs: x || void 0 }) }),
        /* @__PURE__ */ jsx5(Tick, { label: t("admin.hostNetwork"), value: v.hostNetwork ?? false, set: (x) => change(i, { hostNetwork: x || void 0 }) }),
        /* @__PURE__ */ jsxs5("select", { "aria-label": t("admin.maxPriority"), title: t("admin.maxPriority"), value: v.maxPriority ?? "", onChange: (e) => change(i, { maxPriority: e.currentTarget.value || void 0 }), children: [
          /* @__PURE__ */ jsx5("option", { value: "", children: t("admin.upTo", { name: "prod" }) }),
          priorities.map((p) => /* @__PURE__ */ jsx5("option", { value: p, children: t("admin.upTo", { name: p }) }, p))
        ] })
      ] }, v.name)),
      /* @__PURE__ */ jsx5("div", { children: /* @__PURE__ */ jsxs5(
        "select",
        {
          "aria-label": t("admin.addVCTo"),
          value: "",
          disabled: left.length === 0,
          onChange: (e) => {
            if (e.currentTarget.value) put({ virtualClusters: [...d.virtualClusters, { name: e.currentTarget.value }] });
            e.currentTarget.value = "";
          },
          children: [
            /* @__PURE__ */ jsx5("option", { value: "", children: t("admin.addVCTo") }),
            left.map((v) => /* @__PURE__ */ jsx5("option", { value: v, children: v }, v))
          ]
        }
      ) })
    ] }),
    /* @__PURE__ */ jsx5(Names, { label: t("admin.storages"), hint: t("admin.storagesHint"), value: d.storages, set: (v) => put({ storages: v }), add: t("admin.addStorage") }),
    /* @__PURE__ */ jsxs5("div", { class: "field", role: "group", "aria-label": t("admin.pages"), children: [
      /* @__PURE__ */ jsx5("span", { class: "label", children: t("admin.pages") }),
      pages3.map((p) => /* @__PURE__ */ jsx5(Tick, { label: t(`admin.page.${p}`), value: d.pages.includes(p), set: (on) => put({ pages: pages3.filter((x) => x === p ? on : d.pages.includes(x)) }) }, p))
    ] }),
    /* @__PURE__ */ jsx5(Pairs, { label: t("admin.external"), hint: t("admin.externalHint"), value: d.external, set: (v) => put({ external: v }), second: t("admin.group") })
  ] });
}
var nothing = draftOf({ name: "" });
function NewGroup() {
  const name = useSignal4("");
  const d = useSignal4(nothing);
  const { busy, error, act } = useAct();
  const path = { group: name.value };
  const body = { spec: specOf({ name: name.value }, d.value) };
  const add = () => act(async () => {
    await call("PUT /api/v3/groups/{group}", { path, body });
    toast(t("admin.added", { name: name.value }));
    go(address(["admin", "groups", name.value]));
  });
  const line = ["paictl group add", quoted(name.value || "NAME"), ...args(nothing, d.value).map((a) => a.replace(/^--add-/, "--"))].join(" ");
  return /* @__PURE__ */ jsxs5(Fragment6, { children: [
    /* @__PURE__ */ jsx5(Top, { title: t("admin.addGroup"), up: ["groups", t("admin.tab.groups")], paictl: line, curl: curl("PUT /api/v3/groups/{group}", { path: { group: name.value || "NAME" }, body }) }),
    /* @__PURE__ */ jsxs5(
      "form",
      {
        class: "form",
        onSubmit: (e) => {
          e.preventDefault();
          void add();
        },
        children: [
          /* @__PURE__ */ jsx5(Line, { label: t("name"), hint: t("admin.nameHint"), value: name.value, required: true, set: (v) => name.value = v }),
          /* @__PURE__ */ jsx5(Form, { d: d.value, put: (change) => d.value = { ...d.value, ...change } }),
          error.value ? /* @__PURE__ */ jsx5(Problem, { of: error.value }) : null,
          /* @__PURE__ */ jsxs5("div", { class: "buttons", children: [
            /* @__PURE__ */ jsx5("a", { class: "button", href: address(["admin", "groups"]), children: t("cancel") }),
            /* @__PURE__ */ jsx5("button", { type: "submit", class: "primary", disabled: busy.value || !name.value, children: t("admin.add") })
          ] }),
          /* @__PURE__ */ jsx5(Command, { lines: [line], why: t("admin.asCommand") })
        ]
      }
    )
  ] });
}
function GroupPage({ name }) {
  const path = { group: name };
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/groups/{group}", { path, signal: signal11 }));
  const base2 = useSignal4(null);
  const d = useSignal4(null);
  const { busy, error: refused2, act } = useAct();
  const g = value.value;
  const spec = ({ members: _, created: __, ...rest }) => rest;
  useEffect5(() => {
    if (!g) return;
    const now2 = spec(g);
    d.value = d.value && base2.value ? rebased(d.value, draftOf(base2.value), draftOf(now2)) : draftOf(now2);
    base2.value = now2;
    refused2.value = null;
  }, [g]);
  if (error.value) return /* @__PURE__ */ jsx5(Problem, { of: error.value, again });
  if (!g || !d.value || !base2.value) return /* @__PURE__ */ jsx5(Loading, {});
  const was = draftOf(base2.value);
  const changed2 = !same(was, d.value);
  const next = specOf(base2.value, d.value);
  const store = () => act(async () => {
    const now2 = await call("PUT /api/v3/groups/{group}", { path, body: { was: base2.value, spec: next } });
    base2.value = spec(now2);
    d.value = draftOf(base2.value);
    value.value = now2;
    toast(t("admin.saved"));
  });
  const difference = args(was, d.value);
  const lines3 = difference.length ? [`paictl group set ${quoted(name)} ${difference.join(" ")}`] : [];
  return /* @__PURE__ */ jsxs5(Fragment6, { children: [
    /* @__PURE__ */ jsx5(Top, { title: name, up: ["groups", t("admin.tab.groups")], paictl: lines3[0] ?? `paictl group show ${quoted(name)}`, curl: changed2 ? curl("PUT /api/v3/groups/{group}", { path, body: { was: base2.value, spec: next } }) : curl("GET /api/v3/groups/{group}", { path }), children: /* @__PURE__ */ jsxs5(
      "button",
      {
        type: "button",
        class: "danger",
        onClick: () => ask2({
          title: t("admin.askDeleteGroup", { name }),
          text: t("admin.deleteGroupHint", { n: g.members?.length ?? 0 }),
          yes: t("remove"),
          danger: true,
          act: async () => {
            await call("DELETE /api/v3/groups/{group}", { path });
            toast(t("admin.removed", { name }));
            go(address(["admin", "groups"]));
          }
        }),
        children: [
          /* @__PURE__ */ jsx5(Icon, { name: "trash" }),
          " ",
          t("remove")
        ]
      }
    ) }),
    /* @__PURE__ */ jsxs5("div", { class: "halves", children: [
      /* @__PURE__ */ jsxs5(
        "form",
        {
          class: "form",
          onSubmit: (e) => {
            e.preventDefault();
            void store();
          },
          children: [
            /* @__PURE__ */ jsx5(Form, { d: d.value, put: (change) => d.value = { ...d.value, ...change } }),
            /* @__PURE__ */ jsx5(Refusal, { of: refused2.value, again }),
            /* @__PURE__ */ jsxs5("div", { class: "buttons", children: [
              changed2 ? /* @__PURE__ */ jsx5("button", { type: "button", onClick: () => d.value = was, children: t("admin.discard") }) : null,
              /* @__PURE__ */ jsx5("button", { type: "submit", class: "primary", disabled: busy.value || !changed2, children: t("admin.save") })
            ] }),
            /* @__PURE__ */ jsx5(Command, { lines: lines3, why: t("admin.asCommand") })
          ]
        }
      ),
      /* @__PURE__ */ jsx5(Members, { group: name, members: g.members ?? [], changed: again })
    ] })
  ] });
}
function Members({ group, members, changed: changed2 }) {
  const { value, error, again } = useRead(members.join(), (signal11) => call("GET /api/v3/users", { signal: signal11 }));
  const { busy, error: refused2, act } = useAct();
  const all2 = value.value?.items ?? [];
  const removable = (name) => all2.find((u) => u.name === name)?.spec?.groups?.includes(group) ?? false;
  const others = all2.filter((u) => !members.includes(u.name)).map((u) => u.name);
  const change = (name, to, done2) => act(async () => {
    const path = { user: name };
    const was = (await call("GET /api/v3/users/{user}", { path })).spec;
    await call("PUT /api/v3/users/{user}", { path, body: { was, spec: { ...was, groups: to(was.groups ?? []) } } });
    toast(done2);
    changed2();
  });
  return /* @__PURE__ */ jsxs5("div", { children: [
    /* @__PURE__ */ jsxs5("h2", { children: [
      t("admin.members"),
      " ",
      /* @__PURE__ */ jsx5("span", { class: "faint", children: members.length })
    ] }),
    /* @__PURE__ */ jsxs5("div", { class: "form", children: [
      error.value ? /* @__PURE__ */ jsx5(Problem, { of: error.value, again }) : null,
      /* @__PURE__ */ jsx5(Refusal, { of: refused2.value, again: changed2 }),
      /* @__PURE__ */ jsx5("div", { children: /* @__PURE__ */ jsxs5(
        "select",
        {
          class: "add-member",
          "aria-label": t("admin.addMember"),
          value: "",
          disabled: busy.value || others.length === 0,
          onChange: (e) => {
            const name = e.currentTarget.value;
            e.currentTarget.value = "";
            if (name) void change(name, (groups) => [...groups, group], t("admin.memberAdded", { name, group }));
          },
          children: [
            /* @__PURE__ */ jsx5("option", { value: "", children: t("admin.addMember") }),
            others.map((x) => /* @__PURE__ */ jsx5("option", { value: x, children: x }, x))
          ]
        }
      ) }),
      members.length === 0 ? /* @__PURE__ */ jsx5("p", { class: "faint", children: t("admin.noMembers") }) : null,
      members.length > 0 ? /* @__PURE__ */ jsx5("table", { class: "rows members", children: /* @__PURE__ */ jsx5("tbody", { children: members.map((name) => /* @__PURE__ */ jsxs5("tr", { children: [
        /* @__PURE__ */ jsxs5("td", { children: [
          /* @__PURE__ */ jsx5("a", { href: address(["admin", "people", name]), children: name }),
          " ",
          /* @__PURE__ */ jsx5("span", { class: "faint", children: all2.find((u) => u.name === name)?.displayName })
        ] }),
        /* @__PURE__ */ jsx5("td", { class: "num", children: removable(name) ? /* @__PURE__ */ jsx5("button", { type: "button", disabled: busy.value, onClick: () => void change(name, (groups) => groups.filter((x) => x !== group), t("admin.memberRemoved", { name, group })), children: t("admin.removeMember") }) : value.value ? /* @__PURE__ */ jsx5("span", { class: "faint", children: t("admin.byProvider") }) : null })
      ] }, name)) }) }) : null,
      /* @__PURE__ */ jsx5(Command, { lines: [`paictl group add-member ${quoted(group)} NAME`, `paictl group remove-member ${quoted(group)} NAME`] })
    ] })
  ] });
}

// pkg/portal/web/src/admin-people.tsx
import { useSignal as useSignal5 } from "./library.js";
import { useEffect as useEffect6 } from "./library.js";
import { Fragment as Fragment7, jsx as jsx6, jsxs as jsxs6 } from "./library.js";
function PersonState({ u }) {
  return /* @__PURE__ */ jsxs6("span", { class: `state ${u.disabled ? "off" : "good"}`, children: [
    /* @__PURE__ */ jsx6("i", { class: "dot" }),
    t(u.disabled ? "admin.disabled" : "admin.active")
  ] });
}
var columns5 = [
  ["name", (u) => u.name],
  ["displayName", (u) => u.displayName],
  ["email", (u) => u.email],
  ["groups", (u) => u.groups?.join(" ")],
  ["administrator", (u) => u.administrator],
  ["disabled", (u) => u.disabled],
  ["created", (u) => u.created],
  ["lastSignIn", (u) => u.lastSignIn]
];
function People() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/users", { signal: signal11 }));
  const most5 = useSignal5(some);
  const word = (q.get("keyword") ?? "").toLowerCase();
  const choice = q.get("state") ?? "";
  const group = q.get("group") ?? "";
  const all2 = value.value?.items ?? [];
  const groups = [...new Set(all2.flatMap((u) => u.groups ?? []).concat(group || []))].sort();
  const rows = all2.filter(
    (u) => (!word || [u.name, u.displayName, u.email, ...u.groups ?? []].join("\n").toLowerCase().includes(word)) && (!group || u.groups?.includes(group)) && (choice === "administrators" ? u.administrator : choice === "disabled" ? u.disabled : true)
  );
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsxs6(Top, { title: t("admin.tab.people"), paictl: "paictl user list" + (group ? " --group " + quoted(group) : ""), curl: curl("GET /api/v3/users", {}), children: [
      /* @__PURE__ */ jsxs6("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("people.csv", [csv(rows, columns5)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx6(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs6("a", { class: "button primary", href: address(["admin", "people"], { add: "true" }), children: [
        /* @__PURE__ */ jsx6(Icon, { name: "plus" }),
        " ",
        t("admin.addPerson")
      ] })
    ] }),
    /* @__PURE__ */ jsxs6("div", { class: "filters", children: [
      /* @__PURE__ */ jsx6(Search, { label: t("admin.searchPeople"), value: q.get("keyword") ?? "" }),
      /* @__PURE__ */ jsx6(
        Segments,
        {
          label: t("state"),
          of: "state",
          value: choice,
          choices: [
            ["", t("everyone")],
            ["administrators", t("admin.administrators")],
            ["disabled", t("admin.disabled")]
          ]
        }
      ),
      /* @__PURE__ */ jsxs6("select", { "aria-label": t("admin.group"), value: group, onChange: (e) => setQuery({ group: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx6("option", { value: "", children: t("admin.anyGroup") }),
        groups.map((g) => /* @__PURE__ */ jsx6("option", { value: g, children: g }, g))
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx6(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx6("p", { class: "empty", children: t("admin.noPerson") }) : /* @__PURE__ */ jsxs6(Fragment7, { children: [
      /* @__PURE__ */ jsxs6("table", { class: "rows people", children: [
        /* @__PURE__ */ jsx6("thead", { children: /* @__PURE__ */ jsxs6("tr", { children: [
          /* @__PURE__ */ jsx6("th", { children: t("name") }),
          /* @__PURE__ */ jsx6("th", { class: "wide", children: t("admin.displayName") }),
          /* @__PURE__ */ jsx6("th", { class: "wide", children: t("admin.groups") }),
          /* @__PURE__ */ jsx6("th", { children: t("state") }),
          /* @__PURE__ */ jsx6("th", { class: "c-time", children: t("admin.lastSignIn") })
        ] }) }),
        /* @__PURE__ */ jsx6("tbody", { children: rows.slice(0, most5.value).map((u) => /* @__PURE__ */ jsxs6("tr", { children: [
          /* @__PURE__ */ jsxs6("td", { class: "c-name", children: [
            /* @__PURE__ */ jsx6("a", { class: "whole", href: address(["admin", "people", u.name]), children: u.name }),
            u.administrator ? /* @__PURE__ */ jsx6("span", { class: "tag strong", children: t("admin.administrator") }) : null
          ] }),
          /* @__PURE__ */ jsx6("td", { class: "wide cut", children: u.displayName || /* @__PURE__ */ jsx6("span", { class: "faint", children: u.email }) }),
          /* @__PURE__ */ jsx6("td", { class: "wide long", children: u.groups?.map((g) => /* @__PURE__ */ jsx6("span", { class: "tag", children: g }, g)) }),
          /* @__PURE__ */ jsx6("td", { children: /* @__PURE__ */ jsx6(PersonState, { u }) }),
          /* @__PURE__ */ jsx6("td", { class: "c-time", children: u.lastSignIn ? /* @__PURE__ */ jsx6(Ago, { time: u.lastSignIn }) : t("admin.never") })
        ] }, u.name)) })
      ] }),
      rows.length > most5.value ? /* @__PURE__ */ jsx6(More, { n: rows.length, most: most5 }) : /* @__PURE__ */ jsx6("p", { class: "under faint", children: t("admin.people", { n: rows.length }) })
    ] })
  ] });
}
function draftOf2(s) {
  return { displayName: s.displayName ?? "", email: s.email ?? "", groups: s.groups ?? [], identities: (s.identities ?? []).map((i) => [i.provider, i.subject]), disabled: s.disabled ?? false };
}
var identities = (d) => d.identities.filter((p) => p[0] || p[1]).map(([provider, subject]) => ({ provider, subject }));
function commands(name, was, now2) {
  const who = quoted(name);
  const out = [];
  const set = [];
  if (was.displayName !== now2.displayName) set.push("--display-name " + quoted(now2.displayName));
  if (was.email !== now2.email) set.push("--email " + quoted(now2.email));
  if (!same(was.groups, now2.groups) && now2.groups.length > 0) set.push(...now2.groups.map((g) => "--group " + quoted(g)));
  if (set.length > 0) out.push(`paictl user set ${who} ${set.join(" ")}`);
  if (now2.groups.length === 0) for (const g of was.groups) out.push(`paictl group remove-member ${quoted(g)} ${who}`);
  const text2 = (p) => `paictl user link ${who} --provider ${quoted(p[0])} --subject ${quoted(p[1])}`;
  for (const p of was.identities) if (!now2.identities.some((x) => same(x, p))) out.push(text2(p) + " --remove");
  for (const p of now2.identities) if (p[0] && p[1] && !was.identities.some((x) => same(x, p))) out.push(text2(p));
  if (was.disabled !== now2.disabled) out.push(`paictl user ${now2.disabled ? "disable" : "enable"} ${who}`);
  return out;
}
function useGroups() {
  const { value } = useRead("", (signal11) => call("GET /api/v3/groups", { signal: signal11 }));
  return (value.value?.items ?? []).map((g) => g.name);
}
function NewPerson() {
  const groups = useGroups();
  const name = useSignal5("");
  const password = useSignal5("");
  const d = useSignal5({ displayName: "", email: "", groups: [], identities: [], disabled: false });
  const takeOver = useSignal5(false);
  const { busy, error, act } = useAct();
  const put = (change) => d.value = { ...d.value, ...change };
  const body = { name: name.value, displayName: d.value.displayName || void 0, email: d.value.email || void 0, groups: d.value.groups, identities: identities(d.value), takeOverHistory: takeOver.value || void 0 };
  const add = () => act(async () => {
    await call("POST /api/v3/users", { body: { ...body, password: password.value || void 0 } });
    toast(t("admin.added", { name: name.value }));
    go(address(["admin", "people", name.value]));
  });
  const command2 = ["paictl user add", quoted(name.value || "NAME")];
  if (d.value.displayName) command2.push("--display-name " + quoted(d.value.displayName));
  if (d.value.email) command2.push("--email " + quoted(d.value.email));
  command2.push(...d.value.groups.map((g) => "--group " + quoted(g)));
  if (takeOver.value) command2.push("--take-over-history");
  if (!password.value) command2.push("--no-password");
  const lines3 = [command2.join(" "), ...commands(name.value || "NAME", { ...d.value, identities: [] }, d.value)];
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6(Top, { title: t("admin.addPerson"), up: ["people", t("admin.tab.people")], paictl: lines3.join("\n"), curl: curl("POST /api/v3/users", { body }) }),
    /* @__PURE__ */ jsxs6(
      "form",
      {
        class: "form",
        onSubmit: (e) => {
          e.preventDefault();
          void add();
        },
        children: [
          /* @__PURE__ */ jsx6(Line, { label: t("name"), hint: t("admin.nameHint"), value: name.value, required: true, set: (v) => name.value = v }),
          /* @__PURE__ */ jsx6(Line, { label: t("admin.displayName"), value: d.value.displayName, set: (v) => put({ displayName: v }) }),
          /* @__PURE__ */ jsx6(Line, { label: t("admin.email"), type: "email", value: d.value.email, set: (v) => put({ email: v }) }),
          /* @__PURE__ */ jsx6(Names, { label: t("admin.groups"), hint: t("admin.defaultGroup"), value: d.value.groups, all: groups, set: (v) => put({ groups: v }), add: t("admin.addGroupTo") }),
          /* @__PURE__ */ jsx6(Username, { name: name.value }),
          /* @__PURE__ */ jsx6(Line, { label: t("admin.password"), hint: t("admin.passwordHint"), type: "password", value: password.value, set: (v) => password.value = v }),
          /* @__PURE__ */ jsx6(Pairs, { label: t("admin.identities"), hint: t("admin.identitiesHint"), value: d.value.identities, set: (v) => put({ identities: v }), second: t("admin.subject") }),
          /* @__PURE__ */ jsx6(Tick, { label: t("admin.takeOver"), hint: t("admin.takeOverHint"), value: takeOver.value, set: (v) => takeOver.value = v }),
          error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value }) : null,
          /* @__PURE__ */ jsxs6("div", { class: "buttons", children: [
            /* @__PURE__ */ jsx6("a", { class: "button", href: address(["admin", "people"]), children: t("cancel") }),
            /* @__PURE__ */ jsx6("button", { type: "submit", class: "primary", disabled: busy.value || !name.value, children: t("admin.add") })
          ] }),
          /* @__PURE__ */ jsx6(Command, { lines: lines3, why: t("admin.asCommand") })
        ]
      }
    )
  ] });
}
function PersonPage({ name }) {
  const path = { user: name };
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/users/{user}", { path, signal: signal11 }));
  const groups = useGroups();
  const base2 = useSignal5(null);
  const d = useSignal5(null);
  const { busy, error: refused2, act } = useAct();
  const put = (change) => d.value = { ...d.value, ...change };
  const u = value.value;
  useEffect6(() => {
    if (!u?.spec) return;
    const now2 = draftOf2(u.spec);
    d.value = d.value && base2.value ? rebased(d.value, draftOf2(base2.value), now2) : now2;
    base2.value = u.spec;
    refused2.value = null;
  }, [u]);
  if (error.value) return /* @__PURE__ */ jsx6(Problem, { of: error.value, again });
  if (!u || !d.value || !base2.value) return /* @__PURE__ */ jsx6(Loading, {});
  const was = draftOf2(base2.value);
  const changed2 = !same(was, d.value);
  const spec = { ...base2.value, displayName: d.value.displayName || void 0, email: d.value.email || void 0, groups: d.value.groups, identities: identities(d.value), disabled: d.value.disabled || void 0 };
  const store = () => act(async () => {
    const now2 = await call("PUT /api/v3/users/{user}", { path, body: { was: base2.value, spec } });
    base2.value = now2.spec ?? spec;
    d.value = draftOf2(base2.value);
    value.value = now2;
    toast(t("admin.saved"));
  });
  const lines3 = commands(name, was, d.value);
  const external = (u.groups ?? []).filter((g) => !was.groups.includes(g));
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6(Top, { title: name, up: ["people", t("admin.tab.people")], paictl: lines3.length ? lines3.join("\n") : `paictl user show ${quoted(name)}`, curl: changed2 ? curl("PUT /api/v3/users/{user}", { path, body: { was: base2.value, spec } }) : curl("GET /api/v3/users/{user}", { path }), children: /* @__PURE__ */ jsx6("a", { class: "button", href: address(["admin", "audit"], { actor: name }), children: t("admin.theirAudit") }) }),
    /* @__PURE__ */ jsxs6("dl", { class: "facts", children: [
      /* @__PURE__ */ jsxs6("div", { children: [
        /* @__PURE__ */ jsx6("dt", { children: t("state") }),
        /* @__PURE__ */ jsxs6("dd", { children: [
          /* @__PURE__ */ jsx6(PersonState, { u }),
          u.administrator ? /* @__PURE__ */ jsx6("span", { class: "tag strong", children: t("admin.administrator") }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs6("div", { children: [
        /* @__PURE__ */ jsx6("dt", { children: t("admin.lastSignIn") }),
        /* @__PURE__ */ jsx6("dd", { children: u.lastSignIn ? /* @__PURE__ */ jsx6(Ago, { time: u.lastSignIn }) : t("admin.never") })
      ] }),
      /* @__PURE__ */ jsxs6("div", { children: [
        /* @__PURE__ */ jsx6("dt", { children: t("admin.created") }),
        /* @__PURE__ */ jsx6("dd", { children: /* @__PURE__ */ jsx6(Ago, { time: u.created }) })
      ] }),
      /* @__PURE__ */ jsxs6("div", { children: [
        /* @__PURE__ */ jsx6("dt", { children: t("vcs") }),
        /* @__PURE__ */ jsx6("dd", { children: u.allVirtualClusters ? t("admin.allVCs") : u.virtualClusters?.map((v) => v.name).join(", ") || "–" })
      ] }),
      /* @__PURE__ */ jsxs6("div", { children: [
        /* @__PURE__ */ jsx6("dt", { children: t("admin.storages") }),
        /* @__PURE__ */ jsx6("dd", { children: u.storages?.join(", ") || "–" })
      ] })
    ] }),
    /* @__PURE__ */ jsxs6("div", { class: "halves", children: [
      /* @__PURE__ */ jsxs6(
        "form",
        {
          class: "form",
          onSubmit: (e) => {
            e.preventDefault();
            void store();
          },
          children: [
            /* @__PURE__ */ jsx6(Line, { label: t("admin.displayName"), value: d.value.displayName, set: (v) => put({ displayName: v }) }),
            /* @__PURE__ */ jsx6(Line, { label: t("admin.email"), type: "email", value: d.value.email, set: (v) => put({ email: v }) }),
            /* @__PURE__ */ jsx6(
              Names,
              {
                label: t("admin.groups"),
                hint: external.length ? t("admin.externalGroups", { names: external.join(", ") }) : void 0,
                value: d.value.groups,
                all: groups,
                set: (v) => put({ groups: v }),
                add: t("admin.addGroupTo")
              }
            ),
            /* @__PURE__ */ jsx6(Pairs, { label: t("admin.identities"), hint: t("admin.identitiesHint"), value: d.value.identities, set: (v) => put({ identities: v }), second: t("admin.subject") }),
            /* @__PURE__ */ jsx6(Tick, { label: t("admin.disable"), hint: t("admin.disableHint"), value: d.value.disabled, set: (v) => put({ disabled: v }) }),
            /* @__PURE__ */ jsx6(Refusal, { of: refused2.value, again }),
            /* @__PURE__ */ jsxs6("div", { class: "buttons", children: [
              changed2 ? /* @__PURE__ */ jsx6("button", { type: "button", onClick: () => d.value = was, children: t("admin.discard") }) : null,
              /* @__PURE__ */ jsx6("button", { type: "submit", class: "primary", disabled: busy.value || !changed2, children: t("admin.save") })
            ] }),
            /* @__PURE__ */ jsx6(Command, { lines: lines3, why: t("admin.asCommand") })
          ]
        }
      ),
      /* @__PURE__ */ jsxs6("div", { children: [
        /* @__PURE__ */ jsx6(Password, { name }),
        /* @__PURE__ */ jsx6(Tokens, { name }),
        /* @__PURE__ */ jsx6("h2", { children: t("admin.removePerson") }),
        /* @__PURE__ */ jsxs6("div", { class: "form", children: [
          /* @__PURE__ */ jsx6("p", { children: t("admin.removeHint") }),
          /* @__PURE__ */ jsx6("div", { class: "buttons", children: /* @__PURE__ */ jsxs6(
            "button",
            {
              type: "button",
              class: "danger",
              onClick: () => ask2({
                title: t("admin.askRemove", { name }),
                text: t("admin.removeHint"),
                yes: t("admin.removePerson"),
                danger: true,
                act: async () => {
                  await call("DELETE /api/v3/users/{user}", { path });
                  toast(t("admin.removed", { name }));
                  go(address(["admin", "people"]));
                }
              }),
              children: [
                /* @__PURE__ */ jsx6(Icon, { name: "trash" }),
                " ",
                t("admin.removePerson")
              ]
            }
          ) }),
          /* @__PURE__ */ jsx6(Command, { lines: [`paictl user remove ${quoted(name)}`] })
        ] })
      ] })
    ] })
  ] });
}
var Username = ({ name }) => /* @__PURE__ */ jsx6("input", { type: "text", autocomplete: "username", value: name, readOnly: true, hidden: true });
function Password({ name }) {
  const own = name === me.value?.name;
  const old = useSignal5("");
  const password = useSignal5("");
  const { busy, error, act } = useAct();
  const set = () => act(async () => {
    await call("PUT /api/v3/users/{user}/password", { path: { user: name }, body: { password: password.value, oldPassword: old.value || void 0 } });
    old.value = password.value = "";
    toast(t("admin.passwordSet"));
  });
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6("h2", { children: t("admin.password") }),
    /* @__PURE__ */ jsxs6(
      "form",
      {
        class: "form",
        onSubmit: (e) => {
          e.preventDefault();
          void set();
        },
        children: [
          /* @__PURE__ */ jsx6(Username, { name }),
          own ? /* @__PURE__ */ jsx6(Field, { label: t("admin.oldPassword"), children: (id) => /* @__PURE__ */ jsx6("input", { id, type: "password", autocomplete: "current-password", value: old.value, onInput: (e) => old.value = e.currentTarget.value }) }) : null,
          /* @__PURE__ */ jsx6(Line, { label: t("admin.newPassword"), hint: t("admin.newPasswordHint"), type: "password", value: password.value, set: (v) => password.value = v }),
          error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value }) : null,
          /* @__PURE__ */ jsx6("div", { class: "buttons", children: /* @__PURE__ */ jsx6("button", { type: "submit", disabled: busy.value || !password.value || own && !old.value, children: t("admin.setPassword") }) }),
          /* @__PURE__ */ jsx6(Command, { lines: [`paictl user passwd ${quoted(name)}`] })
        ]
      }
    )
  ] });
}
function Tokens({ name }) {
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/tokens", { query: { user: name }, signal: signal11 }));
  const items = value.value?.items ?? [];
  const own = (r) => r.id === me.value?.token.id;
  const revoke = (of, title) => ask2({
    title,
    text: t(of.some(own) ? "admin.revokeOwn" : "admin.revokeHint"),
    yes: t("admin.revoke"),
    danger: true,
    act: async () => {
      try {
        for (const r of [...of].sort((a, b) => Number(own(a)) - Number(own(b)))) await call("DELETE /api/v3/tokens/{token}", { path: { token: r.id } });
        toast(t("admin.revoked"));
      } finally {
        again();
      }
    }
  });
  return /* @__PURE__ */ jsxs6(Fragment7, { children: [
    /* @__PURE__ */ jsx6("h2", { children: t("admin.tokens") }),
    /* @__PURE__ */ jsxs6("div", { class: "form", children: [
      error.value ? /* @__PURE__ */ jsx6(Problem, { of: error.value, again }) : null,
      value.value && items.length === 0 ? /* @__PURE__ */ jsx6("p", { class: "faint", children: t("admin.noTokens") }) : null,
      items.length > 0 ? /* @__PURE__ */ jsxs6(Fragment7, { children: [
        /* @__PURE__ */ jsx6("table", { class: "rows tokens", children: /* @__PURE__ */ jsx6("tbody", { children: items.map((r) => /* @__PURE__ */ jsxs6("tr", { children: [
          /* @__PURE__ */ jsxs6("td", { class: "cut", title: r.id, children: [
            maybe("admin.kind." + r.kind, r.kind),
            " ",
            r.label ? /* @__PURE__ */ jsx6("b", { children: r.label }) : null,
            /* @__PURE__ */ jsx6("br", {}),
            /* @__PURE__ */ jsxs6("span", { class: "faint small", children: [
              r.used ? t("admin.used") + " " : t("admin.created") + " ",
              /* @__PURE__ */ jsx6(Ago, { time: r.used ?? r.created }),
              " ",
              r.address,
              " ",
              own(r) ? t("admin.thisSession") : null
            ] })
          ] }),
          /* @__PURE__ */ jsx6("td", { class: "num", children: /* @__PURE__ */ jsx6("button", { type: "button", onClick: () => revoke([r], t("admin.askRevoke", { name: r.label || r.id })), children: t("admin.revoke") }) })
        ] }, r.id)) }) }),
        /* @__PURE__ */ jsx6("div", { class: "buttons", children: /* @__PURE__ */ jsx6("button", { type: "button", class: "danger", onClick: () => revoke(items, t("admin.askRevokeAll", { name })), children: t("admin.revokeAll") }) })
      ] }) : null,
      /* @__PURE__ */ jsx6(Command, { lines: [`paictl token revoke --user ${quoted(name)} --all`] })
    ] })
  ] });
}

// pkg/portal/web/src/admin-services.tsx
import { Fragment as Fragment8 } from "./library.js";
import { Fragment as Fragment9, jsx as jsx7, jsxs as jsxs7 } from "./library.js";
var family3 = { ready: "good", starting: "run", failed: "bad", orphan: "wait", unknown: "wait" };
var calm = ["ready", "disabled", "not installed", "stopped"];
var columns6 = [
  ["name", (s) => s.name],
  ["state", (s) => s.state],
  ["readyPods", (s) => s.readyPods],
  ["pods", (s) => s.pods],
  ["chart", (s) => s.chart],
  ["revision", (s) => s.revision],
  ["updated", (s) => s.updated],
  ["configuration", (s) => s.configuration],
  ["problems", (s) => s.problems?.map((p) => `${p.object}: ${p.message}`).join("; ")]
];
function commands2(s) {
  const name = quoted(s.name);
  if (["stopped", "not installed", "disabled"].includes(s.state)) return [s.hint || `paictl service start -n ${name}`];
  if (s.state === "orphan") return [`paictl service stop ${name}`];
  return [`paictl service status -n ${name}`, `paictl service logs ${name} -f`, `paictl service restart -n ${name} --force`, `paictl service stop ${name}`];
}
function Details2({ s }) {
  return /* @__PURE__ */ jsxs7("div", { class: "open", children: [
    s.problems?.map((p, i) => /* @__PURE__ */ jsxs7("div", { class: "said", children: [
      /* @__PURE__ */ jsxs7("p", { children: [
        /* @__PURE__ */ jsx7("code", { children: p.object }),
        " ",
        /* @__PURE__ */ jsx7("b", { children: p.reason })
      ] }),
      /* @__PURE__ */ jsx7("p", { children: p.message }),
      p.hint ? /* @__PURE__ */ jsx7("ul", { class: "remedy", "aria-label": t("whatToDo"), children: /* @__PURE__ */ jsx7("li", { children: p.hint }) }) : null,
      p.log?.length ? /* @__PURE__ */ jsx7("pre", { class: "code", children: p.log.join("\n") }) : null
    ] }, i)),
    !s.problems?.length ? /* @__PURE__ */ jsx7("p", { class: "faint", children: t("admin.noProblems") }) : null,
    /* @__PURE__ */ jsx7("dl", { class: "facts", children: [
      ["admin.namespace", s.namespace],
      ["admin.chart", s.chart],
      ["admin.revision", s.revision],
      ["admin.configuration", s.configuration],
      ["admin.installedBy", s.paictl && "paictl " + s.paictl]
    ].map(
      ([key2, x]) => x ? /* @__PURE__ */ jsxs7("div", { children: [
        /* @__PURE__ */ jsx7("dt", { children: t(key2) }),
        /* @__PURE__ */ jsx7("dd", { children: x })
      ] }, key2) : null
    ) }),
    /* @__PURE__ */ jsx7(Command, { lines: commands2(s), why: t("admin.serviceCommands") })
  ] });
}
function Services() {
  const q = place.value.query;
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/services", { signal: signal11 }), 1e4);
  const open = q.get("open");
  const word = (q.get("keyword") ?? "").toLowerCase();
  const choice = q.get("state") ?? "";
  const rows = (value.value?.items ?? []).filter((s) => (!word || s.name.toLowerCase().includes(word)) && (choice !== "trouble" || (s.problems?.length ?? 0) > 0 || !calm.includes(s.state)));
  return /* @__PURE__ */ jsxs7(Fragment9, { children: [
    /* @__PURE__ */ jsx7(Top, { title: t("admin.tab.services"), paictl: "paictl service status" + (open ? " -n " + quoted(open) : ""), curl: curl("GET /api/v3/services", {}), children: /* @__PURE__ */ jsxs7("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("services.csv", [csv(rows, columns6)], "text/csv;charset=utf-8"), children: [
      /* @__PURE__ */ jsx7(Icon, { name: "down" }),
      " ",
      t("csv")
    ] }) }),
    /* @__PURE__ */ jsxs7("div", { class: "filters", children: [
      /* @__PURE__ */ jsx7(Search, { label: t("admin.searchServices"), value: q.get("keyword") ?? "" }),
      /* @__PURE__ */ jsx7(
        Segments,
        {
          label: t("state"),
          of: "state",
          value: choice,
          choices: [
            ["", t("state.all")],
            ["trouble", t("admin.trouble")]
          ]
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx7(Problem, { of: error.value, again }) : null,
    value.value?.notes?.map((n) => /* @__PURE__ */ jsxs7("p", { class: "note", children: [
      n.message,
      " ",
      n.remedy ? /* @__PURE__ */ jsx7("span", { class: "faint", children: n.remedy }) : null
    ] }, n.message)),
    !value.value ? error.value ? null : /* @__PURE__ */ jsx7(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx7("p", { class: "empty", children: t(choice || word ? "admin.noServiceHere" : "admin.noService") }) : /* @__PURE__ */ jsxs7("table", { class: "rows services", children: [
      /* @__PURE__ */ jsx7("thead", { children: /* @__PURE__ */ jsxs7("tr", { children: [
        /* @__PURE__ */ jsx7("th", { children: t("name") }),
        /* @__PURE__ */ jsx7("th", { children: t("state") }),
        /* @__PURE__ */ jsx7("th", { class: "num", children: t("admin.pods") }),
        /* @__PURE__ */ jsx7("th", { class: "wide", children: t("admin.release") }),
        /* @__PURE__ */ jsx7("th", { class: "wide", children: t("admin.configuration") }),
        /* @__PURE__ */ jsx7("th", { class: "c-time wide", children: t("admin.updated") })
      ] }) }),
      /* @__PURE__ */ jsx7("tbody", { children: rows.map((s) => /* @__PURE__ */ jsxs7(Fragment8, { children: [
        /* @__PURE__ */ jsxs7("tr", { children: [
          /* @__PURE__ */ jsx7("td", { class: "c-name", children: /* @__PURE__ */ jsxs7("button", { type: "button", class: "bare whole", "aria-expanded": open === s.name, onClick: () => setQuery({ open: open === s.name ? void 0 : s.name }), children: [
            /* @__PURE__ */ jsx7(Icon, { name: open === s.name ? "drop" : "chevron" }),
            " ",
            s.name
          ] }) }),
          /* @__PURE__ */ jsx7("td", { children: /* @__PURE__ */ jsxs7("span", { class: `state ${family3[s.state] ?? "off"}`, children: [
            /* @__PURE__ */ jsx7("i", { class: "dot" }),
            maybe("admin.service." + s.state, s.state)
          ] }) }),
          /* @__PURE__ */ jsx7("td", { class: "num", children: s.pods ? `${s.readyPods}/${s.pods}` : /* @__PURE__ */ jsx7("span", { class: "faint", children: "–" }) }),
          /* @__PURE__ */ jsxs7("td", { class: "wide", children: [
            s.chart,
            " ",
            s.revision ? /* @__PURE__ */ jsxs7("span", { class: "faint", children: [
              "#",
              s.revision
            ] }) : null
          ] }),
          /* @__PURE__ */ jsx7("td", { class: "wide", children: s.configuration === "up to date" ? /* @__PURE__ */ jsx7("span", { class: "faint", children: t("admin.current") }) : s.configuration }),
          /* @__PURE__ */ jsx7("td", { class: "c-time wide", children: s.updated ? /* @__PURE__ */ jsx7(Ago, { time: s.updated }) : null })
        ] }),
        open === s.name ? /* @__PURE__ */ jsx7("tr", { class: "opened", children: /* @__PURE__ */ jsx7("td", { colSpan: 6, children: /* @__PURE__ */ jsx7(Details2, { s }) }) }) : s.problems?.length ? /* @__PURE__ */ jsx7("tr", { class: "why-row", children: /* @__PURE__ */ jsxs7("td", { colSpan: 6, class: "long", children: [
          /* @__PURE__ */ jsx7("code", { children: s.problems[0].object }),
          " ",
          s.problems[0].message,
          s.problems.length > 1 ? /* @__PURE__ */ jsxs7("span", { class: "faint", children: [
            " ",
            t("admin.andMore", { n: s.problems.length - 1 })
          ] }) : null
        ] }) }) : null
      ] }, s.name)) })
    ] })
  ] });
}

// pkg/portal/web/src/admin-vcs.tsx
import { useSignal as useSignal6 } from "./library.js";
import { useEffect as useEffect7 } from "./library.js";
import { Fragment as Fragment10, jsx as jsx8, jsxs as jsxs8 } from "./library.js";
var often = 5e3;
var useVCs = () => useRead("", (signal11) => call("GET /api/v3/virtual-clusters", { signal: signal11 }), often);
var cpuOnly = (v) => v.guaranteed === 0 && (v.cpuCells?.guaranteed ?? 0) > 0;
var amounts = (v) => cpuOnly(v) ? v.cpuCells : v;
function cellsText(v) {
  return [...(v.virtualCells ?? []).map((c) => `${c.cellNumber} × ${c.cellType}`), ...(v.pinnedCells ?? []).map((id) => t("admin.pinnedCell", { id }))].join(", ");
}
function quotaText(v) {
  const q = v.quota;
  const named2 = (of, text2) => Object.entries(of ?? {}).map(([name, n]) => text2(name, n ? String(n) : "∞"));
  return [
    q?.perUser ? t("admin.perUser", { n: q.perUser }) : "",
    q?.perGroup ? t("admin.perGroup", { n: q.perGroup }) : "",
    ...named2(q?.users, (name, n) => `${name}: ${n}`),
    ...named2(q?.groups, (name, n) => `${t("admin.group")} ${name}: ${n}`)
  ].filter(Boolean).join(", ");
}
var columns7 = [
  ["name", (v) => v.name],
  ["guaranteed", (v) => v.guaranteed],
  ["used", (v) => v.used],
  ["free", (v) => v.free],
  ["bad", (v) => v.bad],
  ["opportunistic", (v) => v.opportunistic],
  ["waitingGangs", (v) => v.waitingGangs],
  ["waitingPods", (v) => v.waitingPods],
  ["cells", (v) => (v.virtualCells ?? []).map((c) => `${c.cellType}=${c.cellNumber}`).join(" ")],
  ["policy", (v) => v.policy]
];
function VirtualClusters() {
  const q = place.value.query;
  const { value, error, again } = useVCs();
  const word = (q.get("keyword") ?? "").toLowerCase();
  const items = value.value?.items ?? [];
  const rows = items.filter((v) => !word || v.name.toLowerCase().includes(word));
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    /* @__PURE__ */ jsxs8(Top, { title: t("vcs"), paictl: "paictl vc list", curl: curl("GET /api/v3/virtual-clusters", {}), children: [
      /* @__PURE__ */ jsxs8("button", { type: "button", title: t("csvMore"), disabled: !value.value, onClick: () => save("virtual-clusters.csv", [csv(rows, columns7)], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx8(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs8("a", { class: "button primary", href: address(["admin", "virtual-clusters"], { add: "true" }), children: [
        /* @__PURE__ */ jsx8(Icon, { name: "plus" }),
        " ",
        t("admin.addVC")
      ] })
    ] }),
    items.length > 8 || word ? /* @__PURE__ */ jsx8("div", { class: "filters", children: /* @__PURE__ */ jsx8(Search, { label: t("admin.searchVCs"), value: q.get("keyword") ?? "" }) }) : null,
    error.value ? /* @__PURE__ */ jsx8(Problem, { of: error.value, again }) : null,
    value.value?.problem ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("admin.oldConfiguration", { why: value.value.problem }) }) : null,
    value.value?.note ? /* @__PURE__ */ jsx8("p", { class: "note", children: value.value.note }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx8(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsx8("p", { class: "empty", children: t("admin.noVC") }) : /* @__PURE__ */ jsxs8("table", { class: "rows vc-table", children: [
      /* @__PURE__ */ jsx8("thead", { children: /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx8("th", { children: t("name") }),
        /* @__PURE__ */ jsx8("th", { class: "num", children: t("admin.guaranteed") }),
        /* @__PURE__ */ jsx8("th", { class: "num", children: t("admin.inUse") }),
        /* @__PURE__ */ jsx8("th", { class: "num", children: t("admin.free") }),
        /* @__PURE__ */ jsx8("th", { class: "wide" }),
        /* @__PURE__ */ jsx8("th", { class: "num", children: t("admin.waiting") }),
        /* @__PURE__ */ jsx8("th", { class: "wide", children: t("admin.cells") }),
        /* @__PURE__ */ jsx8("th", { class: "wide", children: t("admin.quota") })
      ] }) }),
      /* @__PURE__ */ jsx8("tbody", { children: rows.map((v) => {
        const n = amounts(v);
        return /* @__PURE__ */ jsxs8("tr", { children: [
          /* @__PURE__ */ jsx8("td", { class: "c-name", children: /* @__PURE__ */ jsx8("a", { class: "whole", href: address(["admin", "virtual-clusters", v.name]), children: v.name }) }),
          /* @__PURE__ */ jsxs8("td", { class: "num", children: [
            n.guaranteed,
            " ",
            cpuOnly(v) ? /* @__PURE__ */ jsx8("span", { class: "faint", children: "CPU" }) : null
          ] }),
          /* @__PURE__ */ jsxs8("td", { class: "num", children: [
            n.used,
            n.opportunistic > 0 ? /* @__PURE__ */ jsxs8("span", { class: "faint", title: t("opportunistic", { n: n.opportunistic }), children: [
              " +",
              n.opportunistic
            ] }) : null
          ] }),
          /* @__PURE__ */ jsxs8("td", { class: "num", children: [
            n.free,
            n.bad > 0 ? /* @__PURE__ */ jsxs8("span", { class: "broken", title: t("broken", { n: n.bad }), children: [
              " −",
              n.bad
            ] }) : null
          ] }),
          /* @__PURE__ */ jsx8("td", { class: "wide c-bar", children: /* @__PURE__ */ jsx8(Bar, { total: n.guaranteed, label: t("usage", { used: n.used, free: n.free, bad: n.bad }), parts: [{ n: n.used, class: "used" }, { n: n.bad, class: "bad" }] }) }),
          /* @__PURE__ */ jsx8("td", { class: "num", children: v.waitingGangs > 0 ? /* @__PURE__ */ jsx8("span", { class: "waits", children: v.waitingGangs }) : /* @__PURE__ */ jsx8("span", { class: "faint", children: "–" }) }),
          /* @__PURE__ */ jsx8("td", { class: "wide long", children: cellsText(v) || /* @__PURE__ */ jsx8("span", { class: "faint", children: "–" }) }),
          /* @__PURE__ */ jsx8("td", { class: "wide long", children: quotaText(v) || /* @__PURE__ */ jsx8("span", { class: "faint", children: "–" }) })
        ] }, v.name);
      }) })
    ] }),
    value.value?.deleted?.length ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("admin.deletedVCs", { names: value.value.deleted.map((v) => v.name).join(", ") }) }) : null
  ] });
}
var policies = ["balanced", "fewer-kills", "start-now"];
function draftOf3(v) {
  const pairs = (of) => Object.entries(of ?? {}).map(([name, n]) => [name, String(n)]);
  return {
    cells: (v?.virtualCells ?? []).map((c) => [c.cellType, String(c.cellNumber)]),
    perUser: String(v?.quota?.perUser ?? 0),
    perGroup: String(v?.quota?.perGroup ?? 0),
    users: pairs(v?.quota?.users),
    groups: pairs(v?.quota?.groups),
    pinned: v?.pinnedCells ?? [],
    policy: v?.policy || policies[0],
    takeFrom: ""
  };
}
function requestOf(name, was, now2) {
  const out = { name };
  const number = (text2) => Number(text2 || 0);
  const table = (of) => new Map(of.filter(([k]) => k).map(([k, v]) => [k, number(v)]));
  const [before2, after] = [table(was.cells), table(now2.cells)];
  const cells = [.../* @__PURE__ */ new Set([...before2.keys(), ...after.keys()])].filter((k) => (before2.get(k) ?? 0) !== (after.get(k) ?? 0)).map((cellType) => ({ cellType, cellNumber: after.get(cellType) ?? 0 }));
  if (cells.length) out.cells = cells;
  const [pin, unpin] = [now2.pinned.filter((x) => !was.pinned.includes(x)), was.pinned.filter((x) => !now2.pinned.includes(x))];
  if (pin.length) out.pin = pin;
  if (unpin.length) out.unpin = unpin;
  if (number(was.perUser) !== number(now2.perUser)) out.perUser = number(now2.perUser);
  if (number(was.perGroup) !== number(now2.perGroup)) out.perGroup = number(now2.perGroup);
  for (const key2 of ["users", "groups"]) {
    const [a, b] = [table(was[key2]), table(now2[key2])];
    const change = {};
    for (const [k, n] of b) if (a.get(k) !== n) change[k] = n;
    for (const k of a.keys()) if (!b.has(k)) change[k] = null;
    if (Object.keys(change).length) out[key2] = change;
  }
  if (was.policy !== now2.policy) out.policy = now2.policy;
  if (Object.keys(out).length === 1) return null;
  if (now2.takeFrom && out.cells) out.takeFrom = now2.takeFrom;
  return out;
}
function commandOf(r, message, force) {
  const named2 = (of) => quoted(Object.entries(of).map(([k, n]) => `${k}=${n ?? "default"}`).join(","));
  const out = [`paictl vc set ${quoted(r.name)}`];
  if (r.delete) out.push("--delete");
  if (r.cells) out.push("--cells " + quoted(r.cells.map((c) => `${c.cellType}=${c.cellNumber}`).join(",")));
  if (r.pin) out.push("--pin " + quoted(r.pin.join(",")));
  if (r.unpin) out.push("--unpin " + quoted(r.unpin.join(",")));
  if (r.perUser !== void 0) out.push("--quota-per-user " + r.perUser);
  if (r.perGroup !== void 0) out.push("--quota-per-group " + r.perGroup);
  if (r.users) out.push("--quota-user " + named2(r.users));
  if (r.groups) out.push("--quota-group " + named2(r.groups));
  if (r.policy) out.push("--policy " + r.policy);
  if (r.takeFrom) out.push("--take-from " + quoted(r.takeFrom));
  if (message) out.push("-m " + quoted(message));
  if (force) out.push("--force");
  return out.join(" ");
}
function Numbers({ label, value, set, name, types: types2, hint }) {
  const change = (i, pair) => set(value.map((x, j) => j === i ? pair : x));
  return /* @__PURE__ */ jsxs8("div", { class: "field", role: "group", "aria-label": label, children: [
    /* @__PURE__ */ jsx8("span", { class: "label", children: label }),
    value.map(([k, n], i) => /* @__PURE__ */ jsxs8("div", { class: "pair", children: [
      /* @__PURE__ */ jsx8("input", { "aria-label": name, placeholder: name, value: k, list: types2 ? "cell-types" : void 0, autocomplete: "off", spellcheck: false, onInput: (e) => change(i, [e.currentTarget.value, n]) }),
      /* @__PURE__ */ jsx8("input", { "aria-label": t("admin.number"), type: "number", min: "0", step: "1", value: n, onInput: (e) => change(i, [k, e.currentTarget.value]) }),
      /* @__PURE__ */ jsx8("button", { type: "button", class: "square", "aria-label": t("admin.removeName", { name: k }), title: t("admin.removeName", { name: k }), onClick: () => set(value.filter((_, j) => j !== i)), children: /* @__PURE__ */ jsx8(Icon, { name: "close" }) })
    ] }, i)),
    types2 ? /* @__PURE__ */ jsx8("datalist", { id: "cell-types", children: types2.map((x) => /* @__PURE__ */ jsx8("option", { value: x }, x)) }) : null,
    /* @__PURE__ */ jsx8("div", { children: /* @__PURE__ */ jsx8("button", { type: "button", class: "link", onClick: () => set([...value, [types2?.find((x) => !value.some(([k]) => k === x)) ?? "", types2 ? "1" : "0"]]), children: t("admin.addPair") }) }),
    hint ? /* @__PURE__ */ jsx8("small", { children: hint }) : null
  ] });
}
function Form2({ d, put, types: types2, others }) {
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    /* @__PURE__ */ jsx8(Numbers, { label: t("admin.cells"), hint: t("admin.cellsHint"), name: t("admin.cellType"), value: d.cells, types: types2, set: (v) => put({ cells: v }) }),
    others.length ? /* @__PURE__ */ jsx8(Field, { label: t("admin.takeFrom"), hint: t("admin.takeFromHint"), children: (id) => /* @__PURE__ */ jsxs8("select", { id, value: d.takeFrom, onChange: (e) => put({ takeFrom: e.currentTarget.value }), children: [
      /* @__PURE__ */ jsx8("option", { value: "", children: t("admin.takeFromNone") }),
      others.map((x) => /* @__PURE__ */ jsx8("option", { value: x, children: x }, x))
    ] }) }) : null,
    /* @__PURE__ */ jsxs8("div", { class: "pair", children: [
      /* @__PURE__ */ jsx8(Line, { label: t("admin.quotaPerUser"), hint: t("admin.noLimit"), type: "number", value: d.perUser, set: (v) => put({ perUser: v }) }),
      /* @__PURE__ */ jsx8(Line, { label: t("admin.quotaPerGroup"), hint: t("admin.noLimit"), type: "number", value: d.perGroup, set: (v) => put({ perGroup: v }) })
    ] }),
    /* @__PURE__ */ jsx8(Numbers, { label: t("admin.quotaUsers"), name: t("admin.person"), value: d.users, set: (v) => put({ users: v }) }),
    /* @__PURE__ */ jsx8(Numbers, { label: t("admin.quotaGroups"), name: t("admin.group"), value: d.groups, set: (v) => put({ groups: v }) }),
    /* @__PURE__ */ jsx8(Field, { label: t("admin.policy"), hint: maybe("admin.policy." + d.policy, ""), children: (id) => /* @__PURE__ */ jsx8("select", { id, value: d.policy, onChange: (e) => put({ policy: e.currentTarget.value }), children: [.../* @__PURE__ */ new Set([...policies, d.policy])].map((x) => /* @__PURE__ */ jsx8("option", { value: x, children: x }, x)) }) })
  ] });
}
function Owns({ v }) {
  return v ? /* @__PURE__ */ jsxs8(Fragment10, { children: [
    /* @__PURE__ */ jsx8("b", { children: amounts(v).guaranteed }),
    " ",
    t(cpuOnly(v) ? "admin.cpuCells" : "gpus"),
    cellsText(v) ? /* @__PURE__ */ jsxs8("span", { class: "faint", children: [
      " (",
      cellsText(v),
      ")"
    ] }) : null
  ] }) : /* @__PURE__ */ jsx8("span", { class: "faint", children: "–" });
}
function Effect({ out }) {
  const e = out.effect;
  const problems = [...e?.problems ?? [], ...(out.warnings ?? []).map((w) => ({ ...w, path: w.field }))];
  const changes = e?.changes ?? [];
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    out.problem ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("admin.oldConfiguration", { why: out.problem }) }) : null,
    out.note ? /* @__PURE__ */ jsx8("p", { class: "note", children: out.note }) : null,
    problems.length ? /* @__PURE__ */ jsx8("ul", { class: "findings", children: problems.map((p, i) => /* @__PURE__ */ jsxs8("li", { class: p.severity === "warning" ? "warn" : "bad", children: [
      p.path ? /* @__PURE__ */ jsx8("code", { children: p.path }) : null,
      " ",
      p.message,
      " ",
      p.remedy ? /* @__PURE__ */ jsx8("span", { class: "faint", children: p.remedy }) : null
    ] }, i)) }) : null,
    e?.virtualClusters?.length ? /* @__PURE__ */ jsxs8("table", { class: "rows owns", children: [
      /* @__PURE__ */ jsx8("thead", { children: /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx8("th", { children: t("vc") }),
        /* @__PURE__ */ jsx8("th", { children: t("admin.ownsNow") }),
        /* @__PURE__ */ jsx8("th", { children: t("admin.ownsThen") })
      ] }) }),
      /* @__PURE__ */ jsx8("tbody", { children: e.virtualClusters.map((c) => /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsx8("td", { children: c.name }),
        /* @__PURE__ */ jsx8("td", { class: "long", children: /* @__PURE__ */ jsx8(Owns, { v: c.before }) }),
        /* @__PURE__ */ jsx8("td", { class: "long", children: /* @__PURE__ */ jsx8(Owns, { v: c.after }) })
      ] }, c.name)) })
    ] }) : null,
    changes.length ? /* @__PURE__ */ jsxs8(Fragment10, { children: [
      /* @__PURE__ */ jsx8("h3", { children: t("admin.jobsAffected", { n: changes.length }) }),
      /* @__PURE__ */ jsx8("table", { class: "rows effects", children: /* @__PURE__ */ jsx8("tbody", { children: changes.map((c) => /* @__PURE__ */ jsxs8("tr", { children: [
        /* @__PURE__ */ jsxs8("td", { class: "long", children: [
          /* @__PURE__ */ jsx8("b", { children: c.group }),
          /* @__PURE__ */ jsxs8("div", { class: "faint small", children: [
            c.user,
            " · ",
            c.vc,
            " · ",
            c.cpuCells ? `${c.cpuCells} ${t("admin.cpuCells")}` : `${c.gpus} ${t("gpus")}`
          ] })
        ] }),
        /* @__PURE__ */ jsxs8("td", { class: `long effect-${c.effect}`, children: [
          maybe("admin.effect." + c.effect, c.effect),
          c.reason ? /* @__PURE__ */ jsx8("div", { class: "faint small", children: c.reason }) : null
        ] })
      ] }, c.vc + c.group)) }) })
    ] }) : e?.valid && !out.note ? /* @__PURE__ */ jsxs8("p", { class: "good", children: [
      /* @__PURE__ */ jsx8(Icon, { name: "check" }),
      " ",
      t("admin.noJobAffected")
    ] }) : null,
    out.diff ? /* @__PURE__ */ jsxs8("details", { open: true, children: [
      /* @__PURE__ */ jsx8("summary", { children: t("admin.diff") }),
      /* @__PURE__ */ jsx8("pre", { class: "code diff", children: out.diff.split("\n").map((line, i) => /* @__PURE__ */ jsx8("span", { class: /^\+(?!\+\+)/.test(line) ? "plus" : /^-(?!--)/.test(line) ? "minus" : "", children: line + "\n" }, i)) })
    ] }) : null
  ] });
}
function Change({ request, done: done2 }) {
  const text2 = JSON.stringify(request);
  const seen = useSignal6(null);
  const stored2 = useSignal6(null);
  const message = useSignal6("");
  const force = useSignal6(false);
  const { busy, error, act } = useAct();
  useEffect7(() => {
    error.value = null;
    force.value = false;
  }, [text2]);
  const preview = () => act(async () => {
    force.value = false;
    stored2.value = null;
    seen.value = null;
    seen.value = { of: text2, out: await call("PATCH /api/v3/virtual-clusters", { body: { changes: [request], dryRun: true } }) };
  });
  const out = seen.value?.of === text2 ? seen.value.out : null;
  const change = { changes: request ? [request] : [], revision: out?.base, message: message.value || void 0, force: out?.refused && force.value || void 0 };
  const apply2 = () => act(async () => {
    const now2 = await call("PATCH /api/v3/virtual-clusters", { body: change });
    stored2.value = { of: text2, out: now2 };
    seen.value = null;
    message.value = "";
    toast(t("admin.stored", { n: now2.revision ?? now2.base }));
    done2();
  });
  const shown = stored2.value && (!request || stored2.value.of === text2) ? stored2.value.out : null;
  const possible = out && (out.changed || out.pending) && out.effect?.valid !== false && (!out.refused || force.value);
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    shown ? /* @__PURE__ */ jsxs8("p", { class: "note stored", children: [
      /* @__PURE__ */ jsx8(Icon, { name: "check" }),
      " ",
      t(shown.installed ? "admin.storedAndLoaded" : "admin.storedOnly", { n: shown.revision ?? shown.base })
    ] }) : null,
    request && !shown ? /* @__PURE__ */ jsxs8(Fragment10, { children: [
      /* @__PURE__ */ jsx8("div", { class: "buttons start", children: /* @__PURE__ */ jsx8("button", { type: "button", class: out ? "" : "primary", disabled: busy.value, onClick: () => void preview(), children: t(out ? "admin.previewAgain" : "admin.preview") }) }),
      /* @__PURE__ */ jsx8(Refusal, { of: error.value, again: () => void preview() }),
      out ? /* @__PURE__ */ jsxs8("div", { class: "outcome", role: "status", children: [
        !out.changed && !out.pending ? /* @__PURE__ */ jsx8("p", { class: "faint", children: t("admin.nothingChanges", { n: out.base }) }) : null,
        out.pending ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("admin.pending", { n: out.base }) }) : null,
        out.effect?.valid === false ? /* @__PURE__ */ jsx8("p", { class: "bad", children: t("admin.invalid") }) : null,
        out.refused ? /* @__PURE__ */ jsxs8("div", { class: "problem refused", role: "alert", children: [
          /* @__PURE__ */ jsx8(Icon, { name: "warn" }),
          /* @__PURE__ */ jsxs8("div", { children: [
            /* @__PURE__ */ jsx8("p", { class: "says", children: out.refused }),
            out.remedy ? /* @__PURE__ */ jsx8("p", { children: out.remedy }) : null
          ] })
        ] }) : null,
        /* @__PURE__ */ jsx8(Effect, { out }),
        (out.changed || out.pending) && out.effect?.valid !== false ? /* @__PURE__ */ jsxs8(
          "form",
          {
            class: "apply",
            onSubmit: (e) => {
              e.preventDefault();
              void apply2();
            },
            children: [
              /* @__PURE__ */ jsx8(Line, { label: t("admin.reason"), hint: t("admin.reasonHint"), value: message.value, set: (v) => message.value = v }),
              out.refused ? /* @__PURE__ */ jsxs8("label", { class: "tick", children: [
                /* @__PURE__ */ jsx8("input", { type: "checkbox", name: "force", checked: force.value, onChange: (e) => force.value = e.currentTarget.checked }),
                /* @__PURE__ */ jsxs8("span", { children: [
                  t("admin.force"),
                  /* @__PURE__ */ jsx8("small", { children: t("admin.forceHint") })
                ] })
              ] }) : null,
              /* @__PURE__ */ jsx8("div", { class: "buttons", children: /* @__PURE__ */ jsx8("button", { type: "submit", class: out.refused ? "primary danger" : "primary", disabled: busy.value || !possible, children: t("admin.apply", { n: out.base }) }) })
            ]
          }
        ) : null
      ] }) : null,
      /* @__PURE__ */ jsx8(Command, { lines: [commandOf(request, message.value, Boolean(change.force))], why: t("admin.asCommand") })
    ] }) : null
  ] });
}
var typesOf = (all2) => [...new Set(all2.flatMap((v) => (v.virtualCells ?? []).map((c) => c.cellType)))].sort();
function NewVC() {
  const { value, error, again } = useVCs();
  const name = useSignal6("");
  const d = useSignal6(draftOf3(null));
  const all2 = value.value?.items ?? [];
  const request = name.value ? requestOf(name.value, draftOf3(null), d.value) : null;
  const example2 = request ?? { name: "NAME", cells: [{ cellType: typesOf(all2)[0] ?? "TYPE", cellNumber: 1 }] };
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    /* @__PURE__ */ jsx8(Top, { title: t("admin.addVC"), up: ["virtual-clusters", t("vcs")], paictl: commandOf(example2, "", false), curl: curl("PATCH /api/v3/virtual-clusters", { body: { changes: [example2], dryRun: true } }) }),
    error.value ? /* @__PURE__ */ jsx8(Problem, { of: error.value, again }) : null,
    value.value?.note ? /* @__PURE__ */ jsx8("p", { class: "note", children: value.value.note }) : null,
    /* @__PURE__ */ jsxs8("div", { class: "halves", children: [
      /* @__PURE__ */ jsxs8("div", { class: "form", children: [
        /* @__PURE__ */ jsx8(Line, { label: t("name"), value: name.value, required: true, set: (v) => name.value = v }),
        /* @__PURE__ */ jsx8(Form2, { d: d.value, put: (change) => d.value = { ...d.value, ...change }, types: typesOf(all2), others: all2.map((v) => v.name) })
      ] }),
      /* @__PURE__ */ jsxs8("div", { children: [
        all2.some((v) => v.name === name.value) ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("admin.vcExists", { name: name.value }) }) : null,
        /* @__PURE__ */ jsx8(Change, { request, done: () => go(address(["admin", "virtual-clusters"])) }),
        request ? null : /* @__PURE__ */ jsx8("p", { class: "empty", children: t("admin.previewHint") })
      ] })
    ] })
  ] });
}
function VCPage({ name }) {
  const { value, error, again } = useVCs();
  const was = useSignal6(null);
  const d = useSignal6(null);
  const deletes = useSignal6(false);
  const heir = useSignal6("");
  const all2 = value.value?.items ?? [];
  const v = all2.find((x) => x.name === name);
  const known2 = JSON.stringify(v && draftOf3(v));
  useEffect7(() => {
    if (!v) return;
    const now2 = draftOf3(v);
    d.value = d.value && was.value ? rebased(d.value, was.value, now2) : now2;
    was.value = now2;
  }, [known2]);
  const top = (r) => ({ title: name, up: ["virtual-clusters", t("vcs")], paictl: r ? commandOf(r, "", false) : `paictl vc show ${quoted(name)}`, curl: r ? curl("PATCH /api/v3/virtual-clusters", { body: { changes: [r], dryRun: true } }) : curl("GET /api/v3/virtual-clusters", {}) });
  if (error.value && !v) return /* @__PURE__ */ jsx8(Problem, { of: error.value, again });
  if (!value.value) return /* @__PURE__ */ jsx8(Loading, {});
  if (!v)
    return /* @__PURE__ */ jsxs8(Fragment10, { children: [
      /* @__PURE__ */ jsx8(Top, { ...top(null) }),
      /* @__PURE__ */ jsx8("p", { class: "empty", children: t("admin.noSuchVC", { name }) })
    ] });
  if (!d.value || !was.value) return /* @__PURE__ */ jsx8(Loading, {});
  const others = all2.map((x) => x.name).filter((x) => x !== name);
  const request = deletes.value ? { name, delete: true, takeFrom: heir.value || void 0 } : requestOf(name, was.value, d.value);
  const n = amounts(v);
  return /* @__PURE__ */ jsxs8(Fragment10, { children: [
    /* @__PURE__ */ jsx8(Top, { ...top(request), children: /* @__PURE__ */ jsxs8("button", { type: "button", class: "danger", "aria-pressed": deletes.value, onClick: () => deletes.value = !deletes.value, children: [
      /* @__PURE__ */ jsx8(Icon, { name: deletes.value ? "close" : "trash" }),
      " ",
      t(deletes.value ? "admin.keep" : "remove")
    ] }) }),
    error.value ? /* @__PURE__ */ jsx8(Problem, { of: error.value, again }) : null,
    value.value.problem ? /* @__PURE__ */ jsx8("p", { class: "note", children: t("admin.oldConfiguration", { why: value.value.problem }) }) : null,
    value.value.note ? /* @__PURE__ */ jsx8("p", { class: "note", children: value.value.note }) : null,
    /* @__PURE__ */ jsxs8("dl", { class: "facts", children: [
      [
        ["admin.guaranteed", n.guaranteed],
        ["admin.inUse", n.used],
        ["admin.free", n.free],
        ["admin.broken", n.bad],
        ["admin.lent", n.opportunistic],
        ["admin.waiting", v.waitingGangs]
      ].map(([key2, x]) => /* @__PURE__ */ jsxs8("div", { children: [
        /* @__PURE__ */ jsx8("dt", { children: t(key2) }),
        /* @__PURE__ */ jsx8("dd", { children: x })
      ] }, key2)),
      /* @__PURE__ */ jsxs8("div", { children: [
        /* @__PURE__ */ jsx8("dt", { children: t("admin.cells") }),
        /* @__PURE__ */ jsx8("dd", { children: cellsText(v) || "–" })
      ] })
    ] }),
    /* @__PURE__ */ jsxs8("div", { class: "halves", children: [
      deletes.value ? /* @__PURE__ */ jsxs8("div", { class: "form", children: [
        /* @__PURE__ */ jsx8("h2", { children: t("admin.deleteVC", { name }) }),
        /* @__PURE__ */ jsx8("p", { children: t("admin.deleteVCHint") }),
        /* @__PURE__ */ jsx8(Field, { label: t("admin.heir"), children: (id) => /* @__PURE__ */ jsxs8("select", { id, value: heir.value, onChange: (e) => heir.value = e.currentTarget.value, children: [
          /* @__PURE__ */ jsx8("option", { value: "", children: t("admin.noHeir") }),
          others.map((x) => /* @__PURE__ */ jsx8("option", { value: x, children: x }, x))
        ] }) })
      ] }) : /* @__PURE__ */ jsxs8("div", { class: "form", children: [
        /* @__PURE__ */ jsx8(Form2, { d: d.value, put: (change) => d.value = { ...d.value, ...change }, types: typesOf(all2), others }),
        same(d.value, was.value) ? null : /* @__PURE__ */ jsx8("div", { class: "buttons", children: /* @__PURE__ */ jsx8("button", { type: "button", onClick: () => d.value = was.value, children: t("admin.discard") }) })
      ] }),
      /* @__PURE__ */ jsxs8("div", { children: [
        /* @__PURE__ */ jsx8(
          Change,
          {
            request,
            done: () => {
              if (deletes.value) go(address(["admin", "virtual-clusters"]));
              else again();
            }
          }
        ),
        request ? null : /* @__PURE__ */ jsx8("p", { class: "empty", children: t("admin.previewHint") })
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/admin.tsx
import { jsx as jsx9, jsxs as jsxs9 } from "./library.js";
var tabs = ["people", "groups", "virtual-clusters", "services", "alerts", "audit"];
function Refused() {
  const { value, error, again } = useRead("", (signal11) => call("GET /api/v3/tokens", { query: { all: true }, signal: signal11 }));
  useEffect8(() => {
    if (value.value) void begin();
  }, [value.value]);
  return /* @__PURE__ */ jsx9("section", { class: "page", children: error.value ? /* @__PURE__ */ jsx9(Problem, { of: error.value, again }) : /* @__PURE__ */ jsx9(Loading, {}) });
}
function Content({ tab, name }) {
  const adds = name === void 0 && place.value.query.has("add");
  switch (tab) {
    case "people":
      return name !== void 0 ? /* @__PURE__ */ jsx9(PersonPage, { name }, name) : adds ? /* @__PURE__ */ jsx9(NewPerson, {}) : /* @__PURE__ */ jsx9(People, {});
    case "groups":
      return name !== void 0 ? /* @__PURE__ */ jsx9(GroupPage, { name }, name) : adds ? /* @__PURE__ */ jsx9(NewGroup, {}) : /* @__PURE__ */ jsx9(Groups, {});
    case "virtual-clusters":
      return name !== void 0 ? /* @__PURE__ */ jsx9(VCPage, { name }, name) : adds ? /* @__PURE__ */ jsx9(NewVC, {}) : /* @__PURE__ */ jsx9(VirtualClusters, {});
    case "services":
      return /* @__PURE__ */ jsx9(Services, {});
    case "alerts":
      return /* @__PURE__ */ jsx9(Alerts, {});
    case "audit":
      return /* @__PURE__ */ jsx9(Audit, {});
  }
  return /* @__PURE__ */ jsx9("p", { class: "empty", children: t("notFound") });
}
function Admin({ tab = "people", name }) {
  if (!me.value?.grants.administrator) return /* @__PURE__ */ jsx9(Refused, {});
  return /* @__PURE__ */ jsxs9("section", { class: "page admin", children: [
    /* @__PURE__ */ jsx9("nav", { class: "tabs", role: "tablist", "aria-label": t("admin"), children: tabs.map((x) => /* @__PURE__ */ jsx9("a", { role: "tab", "aria-selected": x === tab, href: address(["admin", x]), children: t(`admin.tab.${x}`) }, x)) }),
    /* @__PURE__ */ jsx9(Content, { tab, name })
  ] });
}

// pkg/portal/web/src/home.tsx
import { useSignal as useSignal9 } from "./library.js";
import { useEffect as useEffect12, useMemo as useMemo4 } from "./library.js";

// pkg/portal/web/src/jobs.tsx
import { useSignal as useSignal7 } from "./library.js";
import { useEffect as useEffect9, useMemo, useRef as useRef3 } from "./library.js";
import { Fragment as Fragment11, jsx as jsx10, jsxs as jsxs10 } from "./library.js";
var size2 = 50;
var choices = {
  all: [],
  active: ["waiting", "queued", "starting", "barrier", "running", "stopping", "retry"],
  running: ["running", "starting", "barrier"],
  waiting: ["waiting", "queued", "retry"],
  succeeded: ["succeeded"],
  failed: ["failed"],
  stopped: ["stopped"]
};
function ran(r) {
  if (!r.started) return "";
  return duration((r.completed ? Date.parse(r.completed) : now.value) - Date.parse(r.started));
}
function Row({ r, chosen: chosen2, owner }) {
  const row = useRef3(null);
  useEffect9(() => {
    if (chosen2) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen2]);
  return /* @__PURE__ */ jsxs10("tr", { ref: row, class: chosen2 ? "chosen" : "", "data-job": r.user + "/" + r.name, children: [
    /* @__PURE__ */ jsx10("td", { class: "c-state", children: /* @__PURE__ */ jsx10(State, { state: r.state, position: r.position, deleted: r.deleted }) }),
    /* @__PURE__ */ jsxs10("td", { class: "c-name", children: [
      /* @__PURE__ */ jsx10("a", { class: "whole", href: address(["jobs", r.user, r.name]), title: r.name, children: r.name }),
      r.tags?.map((tag) => /* @__PURE__ */ jsx10("span", { class: "tag", children: tag }, tag))
    ] }),
    owner ? /* @__PURE__ */ jsx10("td", { class: "c-owner", children: r.user }) : null,
    /* @__PURE__ */ jsx10("td", { class: "c-vc", children: r.virtualCluster }),
    /* @__PURE__ */ jsx10("td", { class: "num c-gpus", children: r.gpus > 0 ? r.gpus : /* @__PURE__ */ jsx10("span", { class: "faint", children: r.gpus < 0 ? "?" : "–" }) }),
    /* @__PURE__ */ jsx10("td", { class: "num c-tasks", children: r.tasks }),
    /* @__PURE__ */ jsx10("td", { class: "num c-duration", children: ran(r) }),
    /* @__PURE__ */ jsx10("td", { class: "c-time", children: /* @__PURE__ */ jsx10(Ago, { time: r.submitted }) })
  ] });
}
function Head({ owner }) {
  return /* @__PURE__ */ jsx10("thead", { children: /* @__PURE__ */ jsxs10("tr", { children: [
    /* @__PURE__ */ jsx10("th", { class: "c-state", children: t("state") }),
    /* @__PURE__ */ jsx10("th", { class: "c-name", children: t("name") }),
    owner ? /* @__PURE__ */ jsx10("th", { class: "c-owner", children: t("owner") }) : null,
    /* @__PURE__ */ jsx10("th", { class: "c-vc", children: t("vc") }),
    /* @__PURE__ */ jsx10("th", { class: "num c-gpus", children: t("gpus") }),
    /* @__PURE__ */ jsx10("th", { class: "num c-tasks", children: t("tasks") }),
    /* @__PURE__ */ jsx10("th", { class: "num c-duration", children: t("duration") }),
    /* @__PURE__ */ jsx10("th", { class: "c-time", children: t("submitted") })
  ] }) });
}
function filterOf2(q) {
  const choice = q.get("state") ?? "all";
  return { choice, state: Object.hasOwn(choices, choice) ? choices[choice] : [choice], user: q.get("user") ?? void 0, vc: q.get("vc") ?? void 0, keyword: q.get("keyword") ?? void 0 };
}
function Jobs() {
  const q = place.value.query.toString();
  const { choice, ...filter } = filterOf2(place.value.query);
  const jobs = useMemo(() => list(filter, size2), [q]);
  const at = useSignal7(-1);
  const busy = useSignal7(false);
  const search = useRef3(null);
  useEffect9(() => {
    document.title = t("jobs") + " – paictl";
    at.value = -1;
    return () => {
      jobs.end();
      lost.value = null;
    };
  }, [jobs]);
  useEffect9(() => {
    const field = search.current;
    if (document.activeElement !== field) field.value = filter.keyword ?? "";
  }, [filter.keyword]);
  const kept = useRef3(null);
  if (jobs.rows.value) kept.current = jobs.rows.value;
  const rows = jobs.rows.value ?? (jobs.error.value ? null : kept.current);
  const move = (by) => at.value = Math.max(0, Math.min((rows?.length ?? 0) - 1, at.value + by));
  useKeys({
    "/": () => search.current?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const r = rows?.[at.value];
      if (r) go(address(["jobs", r.user, r.name]));
    }
  });
  const timer = useRef3(0);
  const typed = (text2) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ keyword: text2 || void 0 }), 250);
  };
  const download = async () => {
    busy.value = true;
    try {
      save("jobs.csv", [csv(await everything(filter), columns)], "text/csv;charset=utf-8");
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const more = async () => {
    busy.value = true;
    try {
      await jobs.older();
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  const command2 = ["paictl job list"];
  if (!filter.user) command2.push("--all-users");
  else if (filter.user !== me.value?.name) command2.push("--user " + quoted(filter.user));
  if (filter.vc) command2.push("--vc " + quoted(filter.vc));
  if (filter.state?.length) command2.push("--state " + quoted(filter.state.join(",")));
  if (filter.keyword) command2.push("--keyword " + quoted(filter.keyword));
  const mine = filter.user === me.value?.name;
  const filtered = q !== "";
  const vcs = [.../* @__PURE__ */ new Set([...ownVCs(), ...filter.vc ? [filter.vc] : []])];
  return /* @__PURE__ */ jsxs10("section", { class: "page", children: [
    /* @__PURE__ */ jsxs10("header", { class: "top", children: [
      /* @__PURE__ */ jsx10("h1", { children: t("jobs") }),
      /* @__PURE__ */ jsx10("span", { class: "grow" }),
      /* @__PURE__ */ jsx10(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/jobs", { query: filter })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs10("button", { type: "button", title: t("csvMore"), disabled: busy.value, onClick: () => void download(), children: [
        /* @__PURE__ */ jsx10(Icon, { name: "down" }),
        " ",
        t("csv")
      ] }),
      /* @__PURE__ */ jsxs10("a", { class: "button primary", href: address(["submit"]), children: [
        /* @__PURE__ */ jsx10(Icon, { name: "plus" }),
        " ",
        t("newJob")
      ] })
    ] }),
    /* @__PURE__ */ jsxs10("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs10("label", { class: "search", children: [
        /* @__PURE__ */ jsx10(Icon, { name: "search" }),
        /* @__PURE__ */ jsx10("input", { ref: search, type: "search", placeholder: t("search"), "aria-label": t("search"), defaultValue: filter.keyword ?? "", onInput: (e) => typed(e.currentTarget.value), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
        /* @__PURE__ */ jsx10("kbd", { children: "/" })
      ] }),
      /* @__PURE__ */ jsxs10("div", { class: "segments", role: "group", "aria-label": t("state"), children: [
        Object.keys(choices).map((name) => /* @__PURE__ */ jsx10("button", { type: "button", "aria-pressed": choice === name, onClick: () => setQuery({ state: name === "all" ? void 0 : name }), children: maybe("state." + name, name) }, name)),
        Object.hasOwn(choices, choice) ? null : /* @__PURE__ */ jsx10("button", { type: "button", "aria-pressed": "true", onClick: () => setQuery({ state: void 0 }), children: maybe("state." + choice, choice) })
      ] }),
      /* @__PURE__ */ jsxs10("div", { class: "segments", role: "group", "aria-label": t("owner"), children: [
        /* @__PURE__ */ jsx10("button", { type: "button", "aria-pressed": !filter.user, onClick: () => setQuery({ user: void 0 }), children: t("everyone") }),
        /* @__PURE__ */ jsx10("button", { type: "button", "aria-pressed": mine, onClick: () => setQuery({ user: me.value?.name }), children: t("mine") }),
        filter.user && !mine ? /* @__PURE__ */ jsxs10("button", { type: "button", "aria-pressed": "true", onClick: () => setQuery({ user: void 0 }), children: [
          filter.user,
          " ",
          /* @__PURE__ */ jsx10(Icon, { name: "close" })
        ] }) : null
      ] }),
      vcs.length > 0 ? /* @__PURE__ */ jsxs10("select", { "aria-label": t("vc"), value: filter.vc ?? "", onChange: (e) => setQuery({ vc: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx10("option", { value: "", children: t("anyVC") }),
        vcs.map((v) => /* @__PURE__ */ jsx10("option", { value: v, children: v }, v))
      ] }) : null
    ] }),
    jobs.error.value ? /* @__PURE__ */ jsx10(Problem, { of: jobs.error.value, again: () => go(location.pathname + location.search, true) }) : null,
    jobs.note.value ? /* @__PURE__ */ jsx10("p", { class: "note", children: jobs.note.value }) : null,
    !rows ? jobs.error.value ? null : /* @__PURE__ */ jsx10(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsxs10("div", { class: "empty", children: [
      /* @__PURE__ */ jsx10("p", { children: filtered ? t("noMatch") : t("noJobs") }),
      filtered ? /* @__PURE__ */ jsx10("button", { type: "button", onClick: () => go(address(["jobs"])), children: t("clearFilters") }) : /* @__PURE__ */ jsx10("p", { class: "faint", children: t("noJobsHint") })
    ] }) : /* @__PURE__ */ jsxs10(Fragment11, { children: [
      /* @__PURE__ */ jsxs10("table", { class: jobs.rows.value ? "rows jobs" : "rows jobs old", "aria-busy": !jobs.rows.value, children: [
        /* @__PURE__ */ jsx10(Head, { owner: true }),
        /* @__PURE__ */ jsx10("tbody", { children: rows.map((r, i) => /* @__PURE__ */ jsx10(Row, { r, chosen: i === at.value, owner: true }, r.uid)) })
      ] }),
      /* @__PURE__ */ jsxs10("footer", { class: "under", children: [
        /* @__PURE__ */ jsx10("span", { class: "faint", children: t(jobs.next.value ? "shownMore" : "shown", { n: rows.length }) }),
        jobs.next.value ? /* @__PURE__ */ jsx10("button", { type: "button", disabled: busy.value, onClick: () => void more(), children: t("older") }) : null
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/cluster.ts
import { signal as signal9 } from "./library.js";
import { useEffect as useEffect10, useMemo as useMemo2 } from "./library.js";
function merge(list2, news, gone, key2) {
  if (!news && !gone) return list2 ?? [];
  const known2 = new Map((list2 ?? []).map((x) => [key2(x), x]));
  for (const x of news ?? []) known2.set(key2(x), x);
  for (const k of gone ?? []) known2.delete(k);
  return [...known2.values()];
}
function apply(c, d) {
  return {
    ...c,
    at: d.at,
    verdict: d.verdict ?? c.verdict,
    counts: d.counts ?? c.counts,
    sources: d.sources ?? c.sources,
    virtualClusters: d.virtualClusters ?? c.virtualClusters,
    services: d.services ?? c.services,
    events: d.events ?? c.events,
    alerts: d.alerts ?? c.alerts,
    machines: merge(c.machines, d.machines, d.goneMachines, (m) => m.name),
    jobs: merge(c.jobs, d.jobs, d.goneJobs, (j) => j.uid)
  };
}
function useCluster(...parts) {
  const out = useMemo2(() => ({ cluster: signal9(null), error: signal9(null) }), []);
  useEffect10(() => {
    const stop = new AbortController();
    watchStatus(
      parts,
      stop.signal,
      (c) => out.cluster.value = c,
      (d) => out.cluster.value && (out.cluster.value = apply(out.cluster.value, d))
    ).catch((e) => {
      if (!stop.signal.aborted) out.error.value = failure(e);
    });
    return () => {
      stop.abort();
      lost.value = null;
    };
  }, []);
  return out;
}
function source(c, name) {
  return c.sources?.find((s) => s.name === name);
}
function broken(g) {
  return g.health === "sick" || g.health === "missing";
}
function down(m) {
  return m.state !== "Ready" || !!m.cordoned;
}
function troubled(m) {
  return m.state !== "Ready" || !!m.pressure?.length || (m.gpus ?? []).some(broken);
}
var names2 = new Intl.Collator("en", { numeric: true });
function byName(a, b) {
  return names2.compare(a.name, b.name);
}

// pkg/portal/web/src/map.tsx
import { useSignal as useSignal8 } from "./library.js";
import { useEffect as useEffect11, useMemo as useMemo3, useRef as useRef4 } from "./library.js";
import { jsx as jsx11, jsxs as jsxs11 } from "./library.js";
var ways = ["use", "owner", "vc", "health"];
var steps = [0, 5, 25, 50, 75, 90];
var categories = 10;
function shade(g, m, by, groups) {
  if (by === "health") {
    if (broken(g)) return "bad";
    if (g.health === "ignored") return "ignored";
    return g.health === "healthy" ? down(m) ? "down" : "good" : "unknown";
  }
  if (broken(g)) return "bad";
  const o = g.owner;
  if (!o) return down(m) ? "down" : "free";
  switch (by) {
    case "use":
      return g.use ? "use-" + steps.findLastIndex((s) => g.use.utilisation >= s) : "held";
    case "owner":
      if (o.user && o.user === me.value?.name) return "mine";
      return o.user ? category(groups.indexOf(o.user)) : "held";
    case "vc":
      return o.virtualCluster ? category(groups.indexOf(o.virtualCluster)) : "held";
  }
}
function category(i) {
  return i < categories ? "cat-" + i : "other";
}
function holders(machines, by) {
  if (by !== "owner" && by !== "vc") return [];
  const n = /* @__PURE__ */ new Map();
  for (const m of machines)
    for (const g of m.gpus ?? []) {
      const name = by === "vc" ? g.owner?.virtualCluster : g.owner?.user;
      if (name && !(by === "owner" && name === me.value?.name)) n.set(name, (n.get(name) ?? 0) + 1);
    }
  const most5 = [...n].sort((a, b) => b[1] - a[1] || byName({ name: a[0] }, { name: b[0] }));
  return most5.map(([name]) => name);
}
function explain(m, g) {
  const parts = [`${m.name} / GPU ${g.index}`];
  if (g.model) parts.push(g.model);
  if (g.health !== "healthy") parts.push(maybe("gpu." + g.health, g.health) + (g.reason ? ": " + g.reason : ""));
  const o = g.owner;
  if (!o) parts.push(down(m) ? t("mapDown") : t("mapFree"));
  else if (o.job) parts.push(o.job + (o.task ? " " + o.task : ""));
  else parts.push(o.pod ? o.pod : t("mapSomeone"));
  if (o?.virtualCluster) parts.push(o.virtualCluster + (o.opportunistic ? " (" + t("mapOpportunistic") + ")" : ""));
  if (g.use) {
    parts.push(t("mapUse", { n: Math.round(g.use.utilisation) }));
    if (g.memory) parts.push(t("mapMemory", { used: Math.round(g.use.memoryUsed / 102.4) / 10, of: Math.round(g.memory / 1024) }));
    if (g.use.temperature) parts.push(Math.round(g.use.temperature) + " °C");
    if (g.use.power) parts.push(Math.round(g.use.power) + " W");
  }
  return parts.join(" · ");
}
var sizes = [44, 38, 32, 28, 24, 20, 17, 14, 12, 10, 8, 7, 6, 5];
var named = 10;
function place2(machines, width2, height2, largest) {
  const most5 = Math.max(1, ...machines.map((m) => m.gpus?.length ?? 0));
  const columns9 = Math.min(most5, 8);
  const rows = Math.ceil(most5 / columns9);
  const longest3 = Math.max(0, ...machines.map((m) => m.name.length));
  let out;
  for (const cell of sizes) {
    if (cell > largest) continue;
    const gap = cell >= 24 ? 4 : cell >= 12 ? 3 : cell >= 7 ? 2 : 1;
    const font = cell >= 28 ? 14 : cell >= 14 ? 11 : 9;
    const label = cell >= named ? font + 5 : 0;
    const margin = cell >= 12 ? cell : 9;
    const blockWidth = Math.max(columns9 * (cell + gap) - gap, label ? Math.min(longest3, 16) * font * 0.55 : 0) + margin;
    const blockHeight = label + rows * (cell + gap) - gap + margin;
    const perRow = Math.max(1, Math.floor((width2 + margin) / blockWidth));
    const full = Math.max(1, Math.ceil(machines.length / perRow)) * blockHeight - margin;
    out = { cell, gap, columns: columns9, label, font, width: width2, height: full, blockWidth, blockHeight, perRow, blocks: [] };
    if (full <= height2 && columns9 * (cell + gap) <= width2) break;
  }
  const l = out;
  l.blocks = machines.map((m, i) => ({ m, x: i % l.perRow * l.blockWidth, y: Math.floor(i / l.perRow) * l.blockHeight }));
  return l;
}
function palette(at) {
  const style = getComputedStyle(at);
  const known2 = /* @__PURE__ */ new Map();
  return (key2) => {
    let colour = known2.get(key2);
    if (colour === void 0) known2.set(key2, colour = style.getPropertyValue("--map-" + key2).trim() || "#888");
    return colour;
  };
}
function draw(canvas, l, by, groups) {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(l.width * ratio), Math.round(l.height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const c = canvas.getContext("2d");
  const colour = palette(canvas);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, l.width, l.height);
  c.font = `${l.font}px ${getComputedStyle(canvas).fontFamily}`;
  c.textBaseline = "top";
  const radius = l.cell >= 28 ? 5 : l.cell >= 12 ? 3 : l.cell >= 9 ? 2 : 0;
  const shapes = /* @__PURE__ */ new Map();
  const shape = (key2) => {
    let path = shapes.get(key2);
    if (!path) shapes.set(key2, path = new Path2D());
    return path;
  };
  for (const b of l.blocks) {
    if (l.label) {
      c.fillStyle = colour(down(b.m) ? "name-down" : "name");
      c.fillText(b.m.name, b.x, b.y, l.blockWidth - 8);
    }
    const gpus = b.m.gpus ?? [];
    if (gpus.length === 0) {
      c.strokeStyle = colour(down(b.m) ? "down" : "line");
      c.strokeRect(b.x + 0.5, b.y + l.label + 0.5, l.columns * (l.cell + l.gap) - l.gap - 1, l.cell - 1);
    }
    gpus.forEach((g, i) => {
      const [x, y] = corner(l, b, i);
      const path = shape(shade(g, b.m, by, groups));
      if (radius) path.roundRect(x, y, l.cell, l.cell, radius);
      else path.rect(x, y, l.cell, l.cell);
      if (broken(g)) cross(shape("cross"), x, y, l.cell);
    });
  }
  for (const [key2, path] of shapes) {
    if (key2 === "cross") continue;
    c.fillStyle = colour(key2);
    c.fill(path);
    if (key2 !== "free") continue;
    c.strokeStyle = colour("line");
    c.stroke(path);
  }
  const crosses = shapes.get("cross");
  if (!crosses) return;
  c.strokeStyle = colour("cross");
  c.stroke(crosses);
}
function corner(l, b, i) {
  return [b.x + i % l.columns * (l.cell + l.gap), b.y + l.label + Math.floor(i / l.columns) * (l.cell + l.gap)];
}
function cross(path, x, y, size4) {
  const m = size4 * 0.28;
  path.moveTo(x + m, y + m);
  path.lineTo(x + size4 - m, y + size4 - m);
  path.moveTo(x + size4 - m, y + m);
  path.lineTo(x + m, y + size4 - m);
}
function hit(l, x, y) {
  const column = Math.floor(x / l.blockWidth);
  const b = column < l.perRow ? l.blocks[Math.floor(y / l.blockHeight) * l.perRow + column] : void 0;
  if (!b) return null;
  const [i, k] = [Math.floor((x - b.x) / (l.cell + l.gap)), Math.floor((y - b.y - l.label) / (l.cell + l.gap))];
  if (i >= l.columns) return null;
  const gpu = Math.max(0, k) * l.columns + i;
  return gpu < Math.max(1, b.m.gpus?.length ?? 0) ? { machine: b.m.name, gpu } : null;
}
function GPUMap({ machines, by, fit, largest = 20, open }) {
  const canvas = useRef4(null);
  const frame = useRef4(null);
  const width2 = useSignal8(0);
  const at = useSignal8(null);
  const tip = useSignal8(null);
  const theme2 = useSignal8(0);
  useEffect11(() => {
    const box = frame.current;
    const sizes2 = new ResizeObserver(() => width2.value = box.clientWidth);
    sizes2.observe(box);
    const redraw = () => theme2.value++;
    const themes = new MutationObserver(redraw);
    themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => {
      sizes2.disconnect();
      themes.disconnect();
      system.removeEventListener("change", redraw);
    };
  }, []);
  const sorted = useMemo3(() => [...machines].sort(byName), [machines]);
  const groups = useMemo3(() => holders(sorted, by), [sorted, by]);
  const l = useMemo3(() => place2(sorted, width2.value, fit, largest), [sorted, width2.value, fit, largest]);
  useEffect11(() => {
    if (!width2.value) return;
    const id = requestAnimationFrame(() => draw(canvas.current, l, by, groups));
    return () => cancelAnimationFrame(id);
  }, [l, by, groups, theme2.value]);
  const block = at.value ? l.blocks.find((b) => b.m.name === at.value.machine) : void 0;
  const m = block?.m;
  const g = m?.gpus?.[at.value.gpu];
  const words3 = m ? g ? explain(m, g) : `${m.name} · ${t("noGPUs")}` : "";
  const [left, top] = block ? corner(l, block, at.value.gpu) : [0, 0];
  const move = (e) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [e.clientX - box.left, e.clientY - box.top];
    const s = hit(l, x, y);
    if (s?.machine !== at.value?.machine || s?.gpu !== at.value?.gpu) at.value = s;
    tip.value = s ? { x: Math.min(x, l.width - 180), y } : null;
  };
  const keys2 = (e) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [l.perRow, 0], ArrowUp: [-l.perRow, 0] };
    const by2 = step[e.key];
    if (e.key === "Enter" && at.value) {
      open?.(at.value.machine);
    } else if (by2 && sorted.length) {
      let i = Math.max(0, sorted.findIndex((x) => x.name === at.value?.machine));
      let k = at.value ? at.value.gpu + by2[1] : 0;
      const count = (j) => Math.max(1, sorted[j].gpus?.length ?? 0);
      if (k < 0 && i > 0) k = count(--i) - 1;
      else if (k >= count(i) && i < sorted.length - 1) [i, k] = [i + 1, 0];
      const to = i + by2[0];
      if (to >= 0 && to < sorted.length) i = to;
      at.value = { machine: sorted[i].name, gpu: Math.max(0, Math.min(k, count(i) - 1)) };
      tip.value = null;
    } else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return /* @__PURE__ */ jsxs11("div", { class: "map", ref: frame, children: [
    /* @__PURE__ */ jsx11(
      "canvas",
      {
        ref: canvas,
        tabIndex: 0,
        role: "img",
        "aria-label": t("mapLabel", { n: sorted.length }),
        style: { width: l.width + "px", height: l.height + "px" },
        onPointerMove: move,
        onPointerLeave: () => {
          at.value = null;
          tip.value = null;
        },
        onClick: () => at.value && open?.(at.value.machine),
        onKeyDown: keys2
      }
    ),
    block ? /* @__PURE__ */ jsx11("i", { class: "map-at", style: { left: left - 3 + "px", top: top - 3 + "px", width: l.cell + 6 + "px", height: l.cell + 6 + "px" } }) : null,
    tip.value && words3 ? /* @__PURE__ */ jsx11("div", { class: "tip", style: { left: tip.value.x + 14 + "px", top: tip.value.y + 16 + "px" }, children: words3.split(" · ").map((line) => /* @__PURE__ */ jsx11("div", { children: line }, line)) }) : null,
    /* @__PURE__ */ jsx11("p", { class: "map-words small", "aria-live": "polite", children: tip.value ? "" : words3 })
  ] });
}
function Legend({ machines, by }) {
  const groups = holders(machines, by);
  const n = /* @__PURE__ */ new Map();
  for (const m of machines) for (const g of m.gpus ?? []) {
    const key2 = shade(g, m, by, groups);
    n.set(key2, (n.get(key2) ?? 0) + 1);
  }
  const fixed = [
    ["free", t("mapFree")],
    ["mine", me.value?.name ?? ""],
    ["good", t("gpu.healthy")],
    ["other", t("mapOthers", { n: groups.length - categories })],
    ["held", by === "use" ? t("mapNoUse") : t("mapSomeone")],
    ["unknown", t("gpu.unknown")],
    ["ignored", t("gpu.ignored")],
    ["down", t("mapDown")],
    ["bad", t("mapBroken")]
  ];
  const named2 = groups.slice(0, categories).map((name, i) => ["cat-" + i, name]);
  const used = steps.map((s, i) => ["use-" + i, i === steps.length - 1 ? `≥ ${s} %` : i === 0 ? `< ${steps[1]} %` : `${s}–${steps[i + 1]} %`]);
  const all2 = [...fixed.slice(0, 3), ...by === "use" ? used : named2, ...fixed.slice(3)];
  return /* @__PURE__ */ jsx11("ul", { class: "legend small", children: all2.map(
    ([key2, text2]) => n.get(key2) ? /* @__PURE__ */ jsxs11("li", { children: [
      /* @__PURE__ */ jsx11("i", { class: "swatch m-" + key2 }),
      " ",
      text2,
      " ",
      /* @__PURE__ */ jsx11("span", { class: "faint", children: n.get(key2) })
    ] }, key2) : null
  ) });
}

// pkg/portal/web/src/home.tsx
import { Fragment as Fragment12, jsx as jsx12, jsxs as jsxs12 } from "./library.js";
var refresh = 15e3;
function useVCs2() {
  const all2 = useSignal9(null);
  const error = useSignal9(null);
  useEffect12(() => {
    const stop = new AbortController();
    const read3 = async () => {
      if (document.hidden && all2.value) return;
      try {
        all2.value = await call("GET /api/v3/virtual-clusters", { signal: stop.signal });
        error.value = null;
      } catch (e) {
        if (!stop.signal.aborted) error.value = failure(e);
      }
    };
    void read3();
    const timer = setInterval(() => void read3(), refresh);
    document.addEventListener("visibilitychange", read3);
    return () => {
      stop.abort();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", read3);
    };
  }, []);
  return { all: all2, error };
}
function VC({ v }) {
  const onlyCPU = v.guaranteed === 0 && v.cpuCells !== void 0;
  const { guaranteed, used, free, bad, opportunistic } = onlyCPU ? v.cpuCells : v;
  const largest = Math.max(0, ...(v.freeByLevel ?? []).filter((l) => l.count > 0).map((l) => l.gpus));
  return /* @__PURE__ */ jsxs12("article", { class: "vc", children: [
    /* @__PURE__ */ jsxs12("header", { children: [
      /* @__PURE__ */ jsx12("a", { href: address(["jobs"], { vc: v.name, state: "active" }), children: v.name }),
      /* @__PURE__ */ jsx12("span", { class: v.waitingGangs ? "waits" : "faint", children: v.waitingGangs ? t("waitingJobs", { n: v.waitingGangs }) : t("nobodyWaits") })
    ] }),
    /* @__PURE__ */ jsxs12("p", { class: "amount", children: [
      /* @__PURE__ */ jsx12("b", { children: t("free", { n: free }) }),
      " ",
      /* @__PURE__ */ jsx12("span", { class: "faint", children: t(onlyCPU ? "ofCPU" : "ofTotal", { n: guaranteed }) })
    ] }),
    /* @__PURE__ */ jsx12(
      Bar,
      {
        total: guaranteed,
        label: t("usage", { used, free, bad }),
        parts: [
          { n: used, class: "used" },
          { n: Math.max(0, guaranteed - used - free - bad), class: "lent" },
          { n: bad, class: "bad" }
        ]
      }
    ),
    /* @__PURE__ */ jsxs12("p", { class: "faint small", children: [
      onlyCPU ? null : largest > 0 ? t("largest", { n: largest }) : v.freeByLevel ? t("largestNone") : null,
      bad > 0 ? /* @__PURE__ */ jsxs12("span", { class: "broken", children: [
        " ",
        t("broken", { n: bad })
      ] }) : null,
      opportunistic > 0 ? /* @__PURE__ */ jsxs12("span", { children: [
        " ",
        t("opportunistic", { n: opportunistic })
      ] }) : null
    ] })
  ] });
}
function Map2({ machines }) {
  const those = machines.filter((m) => m.gpus?.length);
  if (those.length === 0) return null;
  return /* @__PURE__ */ jsxs12(Fragment12, { children: [
    /* @__PURE__ */ jsxs12("header", { class: "part", children: [
      /* @__PURE__ */ jsx12("h2", { children: t("gpuMap") }),
      /* @__PURE__ */ jsx12("a", { href: address(["machines"]), children: t("machines") })
    ] }),
    /* @__PURE__ */ jsx12(GPUMap, { machines: those, by: "owner", fit: 260, largest: 14, open: (name) => go(address(["machines"], { machine: name })) }),
    /* @__PURE__ */ jsx12(Legend, { machines: those, by: "owner" })
  ] });
}
function VCs() {
  const { all: all2, error } = useVCs2();
  const items = all2.value?.items ?? [];
  return /* @__PURE__ */ jsxs12(Fragment12, { children: [
    error.value ? /* @__PURE__ */ jsx12(Problem, { of: error.value }) : null,
    all2.value?.note ? /* @__PURE__ */ jsx12("p", { class: "note", children: all2.value.note }) : null,
    all2.value?.problem ? /* @__PURE__ */ jsx12("p", { class: "note", children: all2.value.problem }) : null,
    !all2.value && !error.value ? /* @__PURE__ */ jsx12(Loading, {}) : null,
    all2.value && items.length === 0 ? /* @__PURE__ */ jsx12("p", { class: "empty", children: t("noVCs") }) : null,
    /* @__PURE__ */ jsx12("div", { class: "vcs", children: items.map((v) => /* @__PURE__ */ jsx12(VC, { v }, v.name)) })
  ] });
}
var size3 = 15;
function Home() {
  const user = me.value.name;
  const jobs = useMemo4(() => list({ user }, size3), [user]);
  const { cluster } = useCluster("machines");
  useEffect12(() => {
    document.title = "paictl";
    return () => {
      jobs.end();
      lost.value = null;
    };
  }, [jobs]);
  const rows = jobs.rows.value?.slice(0, size3);
  return /* @__PURE__ */ jsxs12("section", { class: "page", children: [
    /* @__PURE__ */ jsxs12("header", { class: "top", children: [
      /* @__PURE__ */ jsx12("h1", { children: t("hello", { name: me.value.displayName || user }) }),
      /* @__PURE__ */ jsx12("span", { class: "grow" }),
      /* @__PURE__ */ jsxs12("a", { class: "button primary", href: address(["submit"]), children: [
        /* @__PURE__ */ jsx12(Icon, { name: "plus" }),
        " ",
        t("newJob")
      ] })
    ] }),
    /* @__PURE__ */ jsxs12("div", { class: "two", children: [
      /* @__PURE__ */ jsxs12("section", { children: [
        /* @__PURE__ */ jsxs12("header", { class: "part", children: [
          /* @__PURE__ */ jsx12("h2", { children: t("myJobs") }),
          /* @__PURE__ */ jsx12("a", { href: address(["jobs"], { user }), children: t("allMine") })
        ] }),
        jobs.error.value ? /* @__PURE__ */ jsx12(Problem, { of: jobs.error.value }) : null,
        !rows ? jobs.error.value ? null : /* @__PURE__ */ jsx12(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsxs12("div", { class: "empty", children: [
          /* @__PURE__ */ jsx12("p", { children: t("noJobs") }),
          /* @__PURE__ */ jsx12("p", { class: "faint", children: t("noJobsHint") })
        ] }) : /* @__PURE__ */ jsxs12("table", { class: "rows jobs", children: [
          /* @__PURE__ */ jsx12(Head, {}),
          /* @__PURE__ */ jsx12("tbody", { children: rows.map((r) => /* @__PURE__ */ jsx12(Row, { r }, r.uid)) })
        ] })
      ] }),
      /* @__PURE__ */ jsxs12("section", { children: [
        /* @__PURE__ */ jsx12("header", { class: "part", children: /* @__PURE__ */ jsx12("h2", { children: t("vcs") }) }),
        /* @__PURE__ */ jsx12(VCs, {}),
        /* @__PURE__ */ jsx12(Map2, { machines: cluster.value?.machines ?? [] })
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/job.tsx
import { useSignal as useSignal12 } from "./library.js";
import { useEffect as useEffect15 } from "./library.js";

// pkg/portal/web/src/logs.tsx
import { useSignal as useSignal10 } from "./library.js";
import { useEffect as useEffect13, useRef as useRef5 } from "./library.js";
import { Fragment as Fragment13, jsx as jsx13, jsxs as jsxs13 } from "./library.js";
var tail = 1e3;
var most2 = 2e4;
var mostBytes = 4 << 20;
var longest2 = 8 << 10;
var burst = 1e3;
var chunk = 250;
var decoder = new TextDecoder();
function read2(l) {
  const all2 = Uint8Array.from(atob(l.text ?? ""), (c) => c.charCodeAt(0));
  let end = all2.length;
  while (end > 0 && (all2[end - 1] === 13 || all2[end - 1] === 10)) end--;
  const from = end > 0 ? all2.lastIndexOf(13, end - 1) + 1 : 0;
  const shown = all2.subarray(from, Math.min(end, from + longest2));
  return { task: l.task, stamp: l.stamp ?? "", text: decoder.decode(shown) + (from + longest2 < end ? "…" : ""), bytes: shown.length };
}
var escapes = /\u001b(?:\[([0-9;?]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;
function coloured(text2) {
  if (!text2.includes("\x1B")) return [{ text: text2, style: "" }];
  const out = [];
  let bold = false;
  let colour = "";
  let from = 0;
  const add = (part) => {
    const style = bold && colour ? "bold " + colour : bold ? "bold" : colour;
    const last = out.at(-1);
    if (last?.style === style) last.text += part;
    else out.push({ text: part, style });
  };
  for (const m of text2.matchAll(escapes)) {
    if (m.index > from) add(text2.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[2] !== "m") continue;
    for (const code of (m[1] || "0").split(";").map(Number)) {
      if (code === 0 || code === 39) colour = "";
      if (code === 0 || code === 22) bold = false;
      else if (code === 1) bold = true;
      else if (code >= 30 && code <= 37) colour = "ansi" + (code - 30);
      else if (code >= 90 && code <= 97) colour = "ansi" + (code - 90);
    }
  }
  if (from < text2.length) add(text2.slice(from));
  return out;
}
var Screen = class {
  constructor(box, several) {
    this.box = box;
    this.several = several;
  }
  box;
  several;
  lines = [];
  dropped = false;
  word = "";
  chunks = [];
  bytes = 0;
  add(more) {
    for (const l of more) {
      let last = this.chunks.at(-1);
      if (!last || last.childElementCount >= chunk) {
        last = document.createElement("div");
        last.className = "chunk";
        this.box.append(last);
        this.chunks.push(last);
      }
      last.append(this.draw(l));
      this.bytes += l.bytes;
    }
    this.lines.push(...more);
    while (this.chunks.length > 1 && (this.lines.length > most2 + chunk || this.bytes > mostBytes)) {
      const first = this.chunks.shift();
      for (const l of this.lines.splice(0, first.childElementCount)) this.bytes -= l.bytes;
      first.remove();
      this.dropped = true;
    }
  }
  clear() {
    this.lines = [];
    this.chunks = [];
    this.bytes = 0;
    this.dropped = false;
    this.box.replaceChildren();
  }
  draw(l) {
    const row = document.createElement("div");
    row.className = "l";
    if (l.stamp) {
      const stamp = document.createElement("span");
      stamp.className = "stamp";
      stamp.textContent = l.stamp.slice(0, 23).replace("T", " ");
      row.append(stamp);
    }
    if (this.several) {
      const task = document.createElement("span");
      task.className = "of";
      task.textContent = l.task;
      row.append(task);
    }
    const text2 = document.createElement("span");
    text2.className = "t";
    this.fill(text2, l.text);
    row.append(text2);
    return row;
  }
  fill(to, text2) {
    const parts = [];
    for (const p of coloured(text2)) {
      const nodes = this.marked(p.text);
      if (!p.style) parts.push(...nodes);
      else {
        const span = document.createElement("span");
        span.className = p.style;
        span.append(...nodes);
        parts.push(span);
      }
    }
    to.replaceChildren(...parts);
  }
  /** Returns a text with the word that is searched marked in it. */
  marked(text2) {
    if (!this.word) return [document.createTextNode(text2)];
    const out = [];
    const lower = text2.toLowerCase();
    let from = 0;
    for (let at = lower.indexOf(this.word); at >= 0; at = lower.indexOf(this.word, from)) {
      if (at > from) out.push(document.createTextNode(text2.slice(from, at)));
      const mark2 = document.createElement("mark");
      mark2.textContent = text2.slice(at, at + this.word.length);
      out.push(mark2);
      from = at + this.word.length;
    }
    if (from < text2.length || out.length === 0) out.push(document.createTextNode(text2.slice(from)));
    return out;
  }
  find(word) {
    const before2 = this.word;
    this.word = word.toLowerCase();
    const rows = this.box.querySelectorAll(".l");
    this.lines.forEach((l, i) => {
      const lower = l.text.toLowerCase();
      if (this.word && lower.includes(this.word) || before2 && lower.includes(before2)) this.fill(rows[i].lastElementChild, l.text);
    });
  }
  marks() {
    return [...this.box.querySelectorAll("mark")];
  }
};
function Logs({ d, user, name }) {
  const query = place.value.query;
  const task = query.get("task") ?? "";
  const previous = query.get("previous") === "true";
  const whole = query.get("all") === "true";
  const box = useRef5(null);
  const screen = useRef5(null);
  const error = useSignal10(null);
  const note = useSignal10("");
  const ended = useSignal10(false);
  const count = useSignal10(0);
  const stick = useSignal10(true);
  const wrap = useSignal10(localStorage.getItem("wrap") !== "false");
  const times2 = useSignal10(false);
  const word = useSignal10("");
  const at = useSignal10(0);
  const found = useSignal10(0);
  const busy = useSignal10(false);
  const field = useRef5(null);
  const m = /^(.*)\[(\d+)\]$/.exec(task);
  const select = m ? { role: m[1], task: Number(m[2]) } : {};
  const path = { user, name };
  const tasks = d.taskList ?? [];
  const several = !m && tasks.length !== 1;
  useEffect13(() => {
    const stop = new AbortController();
    const to = new Screen(box.current, several);
    screen.current = to;
    to.clear();
    error.value = null;
    note.value = "";
    ended.value = false;
    count.value = 0;
    to.word = word.value.toLowerCase();
    let waiting = [];
    let drawing = 0;
    const draw2 = () => {
      drawing = 0;
      to.add(waiting);
      waiting = [];
      count.value = to.lines.length;
      if (to.word) found.value = to.marks().length;
      if (stick.value) box.current.scrollTop = box.current.scrollHeight;
    };
    let first = true;
    lasting(stop.signal, (alive2) => {
      if (!first) {
        waiting = [];
        to.clear();
      }
      first = false;
      return frames("GET /api/v3/jobs/{user}/{name}/logs", { path, query: { ...select, previous, follow: true, tail: whole ? void 0 : tail } }, stop.signal, (f) => {
        alive2();
        if (f.line) {
          waiting.push(read2(f.line));
          drawing ||= requestAnimationFrame(draw2);
          if (waiting.length >= burst) {
            cancelAnimationFrame(drawing);
            draw2();
          }
        }
        if (f.note) note.value = f.note;
        if (f.problem) lost.value = new Failure(503, "UnavailableError", f.problem);
        if (f.back) lost.value = null;
      });
    }).then(() => ended.value = true).catch((e) => {
      if (!stop.signal.aborted) error.value = failure(e);
    });
    return () => {
      stop.abort();
      cancelAnimationFrame(drawing);
      lost.value = null;
    };
  }, [task, previous, whole, several]);
  const show = (i) => {
    const all2 = screen.current?.marks() ?? [];
    found.value = all2.length;
    for (const x of all2) x.classList.remove("here");
    if (all2.length === 0) return;
    at.value = (i + all2.length) % all2.length;
    stick.value = false;
    all2[at.value].classList.add("here");
    const mark2 = all2[at.value].getBoundingClientRect();
    const frame = box.current.getBoundingClientRect();
    box.current.scrollTop += mark2.top - frame.top - frame.height / 2;
  };
  const timer = useRef5(0);
  const search = (text2) => {
    word.value = text2;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      screen.current?.find(text2);
      if (text2) show(0);
      else found.value = 0;
    }, 150);
  };
  useEffect13(() => {
    const keys2 = (e) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "f" && !e.shiftKey) {
        e.preventDefault();
        field.current?.select();
      }
    };
    addEventListener("keydown", keys2);
    return () => removeEventListener("keydown", keys2);
  }, []);
  const download = async () => {
    busy.value = true;
    const stop = new AbortController();
    const parts = [];
    try {
      await frames("GET /api/v3/jobs/{user}/{name}/logs", { path, query: { ...select, previous } }, stop.signal, (f) => {
        if (!f.line) return;
        if (several) parts.push(f.line.task + " ");
        parts.push(Uint8Array.from(atob(f.line.text ?? ""), (c) => c.charCodeAt(0)), "\n");
      });
      save(`${name}${task ? "-" + task.replace(/[[\]]/g, "-").replace(/-$/, "") : ""}.log`, parts, "text/plain");
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsxs13("div", { class: "logs", children: [
    /* @__PURE__ */ jsxs13("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs13("select", { "aria-label": t("task"), value: task, onChange: (e) => setQuery({ task: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx13("option", { value: "", children: t("allTasks") }),
        tasks.map((x) => /* @__PURE__ */ jsxs13("option", { value: `${x.role}[${x.index}]`, children: [
          x.role,
          "[",
          x.index,
          "]",
          x.node ? ` · ${x.node}` : ""
        ] }, `${x.role}[${x.index}]`))
      ] }),
      /* @__PURE__ */ jsxs13("label", { class: "search", children: [
        /* @__PURE__ */ jsx13(Icon, { name: "search" }),
        /* @__PURE__ */ jsx13(
          "input",
          {
            ref: field,
            type: "search",
            placeholder: t("find"),
            "aria-label": t("find"),
            onInput: (e) => search(e.currentTarget.value),
            onKeyDown: (e) => {
              if (e.key === "Enter") show(at.value + (e.shiftKey ? -1 : 1));
              if (e.key === "Escape") e.currentTarget.blur();
            }
          }
        ),
        word.value ? /* @__PURE__ */ jsx13("span", { class: "faint hits", children: found.value ? t("matches", { at: at.value + 1, n: found.value }) : t("noMatches") }) : null
      ] }),
      word.value ? /* @__PURE__ */ jsxs13(Fragment13, { children: [
        /* @__PURE__ */ jsx13("button", { type: "button", class: "square", title: t("before"), "aria-label": t("before"), onClick: () => show(at.value - 1), children: /* @__PURE__ */ jsx13(Icon, { name: "up" }) }),
        /* @__PURE__ */ jsx13("button", { type: "button", class: "square", title: t("next"), "aria-label": t("next"), onClick: () => show(at.value + 1), children: /* @__PURE__ */ jsx13(Icon, { name: "drop" }) })
      ] }) : null,
      /* @__PURE__ */ jsx13("span", { class: "grow" }),
      /* @__PURE__ */ jsxs13("label", { class: "tick", children: [
        /* @__PURE__ */ jsx13("input", { type: "checkbox", checked: previous, onChange: (e) => setQuery({ previous: e.currentTarget.checked ? "true" : void 0 }) }),
        " ",
        t("previous")
      ] }),
      /* @__PURE__ */ jsxs13("label", { class: "tick", children: [
        /* @__PURE__ */ jsx13("input", { type: "checkbox", checked: times2.value, onChange: (e) => times2.value = e.currentTarget.checked }),
        " ",
        t("times")
      ] }),
      /* @__PURE__ */ jsxs13("label", { class: "tick", children: [
        /* @__PURE__ */ jsx13(
          "input",
          {
            type: "checkbox",
            checked: wrap.value,
            onChange: (e) => {
              wrap.value = e.currentTarget.checked;
              localStorage.setItem("wrap", String(wrap.value));
            }
          }
        ),
        " ",
        t("wrap")
      ] }),
      /* @__PURE__ */ jsxs13("button", { type: "button", disabled: busy.value, onClick: () => void download(), children: [
        /* @__PURE__ */ jsx13(Icon, { name: "down" }),
        " ",
        t("download")
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx13(Problem, { of: error.value }) : null,
    note.value ? /* @__PURE__ */ jsx13("p", { class: "note", children: note.value }) : null,
    /* @__PURE__ */ jsxs13("p", { class: "faint small", children: [
      screen.current?.dropped ? t("tooLong", { n: most2 }) : whole ? t("lines", { n: count.value }) : t("showingLast", { n: tail }),
      " ",
      /* @__PURE__ */ jsx13("button", { type: "button", class: "link", onClick: () => setQuery({ all: whole ? void 0 : "true" }), children: whole ? t("newest") : t("fromStart") })
    ] }),
    /* @__PURE__ */ jsxs13("div", { class: "screen-frame", children: [
      /* @__PURE__ */ jsx13(
        "div",
        {
          ref: box,
          class: `screen ${wrap.value ? "wraps" : ""} ${times2.value ? "timed" : ""}`,
          tabIndex: 0,
          role: "log",
          "aria-label": t("logs"),
          onScroll: (e) => {
            const b = e.currentTarget;
            stick.value = b.scrollHeight - b.scrollTop - b.clientHeight < 24;
          }
        }
      ),
      stick.value ? null : /* @__PURE__ */ jsxs13(
        "button",
        {
          type: "button",
          class: "to-end",
          onClick: () => {
            stick.value = true;
            box.current.scrollTop = box.current.scrollHeight;
          },
          children: [
            /* @__PURE__ */ jsx13(Icon, { name: "drop" }),
            " ",
            t("follow")
          ]
        }
      )
    ] }),
    /* @__PURE__ */ jsx13("p", { class: "faint small", children: ended.value ? count.value ? t("logEnded") : t("emptyLog") : count.value ? t("logFollows") : t("emptyLog") })
  ] });
}

// pkg/portal/web/src/terminal.tsx
import { useSignal as useSignal11 } from "./library.js";
import { useEffect as useEffect14, useRef as useRef6 } from "./library.js";

// pkg/portal/web/src/load.ts
function load(name) {
  return import(new URL(`./${name}.js`, import.meta.url).href);
}

// pkg/portal/web/src/terminal.tsx
import { jsx as jsx14, jsxs as jsxs14 } from "./library.js";
var stdin = 0;
var stdout = 1;
var stderr = 2;
var status = 3;
var resize = 4;
var command = ["sh", "-c", 'test -z "$1" || export TERM="$1"; command -v bash >/dev/null && exec bash; exec sh', "sh", "xterm-256color"];
var most3 = 8 << 20;
var alive = 25e3;
function ending(text2) {
  try {
    const s = JSON.parse(text2);
    if (s.status === "Success") return { code: 0 };
    const code = s.details?.causes?.find((c) => c.reason === "ExitCode")?.message;
    return code !== void 0 && /^\d+$/.test(code) ? { code: Number(code) } : { why: s.message };
  } catch {
    return { why: text2 };
  }
}
async function connect(user, name, task, screen, opened, ended, stop) {
  const path = { user, name, ...task };
  const ticket = await call("POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec/ticket", { path, signal: stop });
  const to = new URL(addressOf("GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec", { path }), location.href);
  to.protocol = to.protocol === "http:" ? "ws:" : "wss:";
  for (const word of command) to.searchParams.append("command", word);
  for (const what of ["tty", "stdin", "stdout"]) to.searchParams.set(what, "true");
  const socket = new WebSocket(to, ["v5.channel.k8s.io", ticket.protocol]);
  socket.binaryType = "arraybuffer";
  let end = {};
  let waits = 0;
  let skipped = 0;
  let timer = 0;
  const drawn = (n) => {
    waits -= n;
    if (skipped > 0 && waits < most3 / 2) {
      screen.write(`\r
\x1B[7m${t("shell.skipped", { n: skipped })}\x1B[0m\r
`);
      skipped = 0;
    }
  };
  const send = (channel, data) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const message = new Uint8Array(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    socket.send(message);
  };
  const size4 = () => send(resize, new TextEncoder().encode(JSON.stringify({ Width: screen.size().columns, Height: screen.size().rows })));
  socket.onopen = () => {
    size4();
    timer = setInterval(size4, alive);
    opened(send);
  };
  socket.onmessage = (e) => {
    const all2 = new Uint8Array(e.data);
    const data = all2.subarray(1);
    if ((all2[0] === stdout || all2[0] === stderr) && data.length) {
      if (waits + data.length > most3) {
        skipped += data.length;
        return;
      }
      waits += data.length;
      screen.write(data, () => drawn(data.length));
    } else if (all2[0] === status && data.length) end = ending(new TextDecoder().decode(data));
  };
  socket.onclose = () => {
    clearInterval(timer);
    ended(end);
  };
  stop.addEventListener("abort", () => socket.close());
}
var keys = [
  ["Esc", "\x1B"],
  ["Tab", "	"],
  ["Ctrl C", ""],
  ["Ctrl D", ""],
  ["↑", "\x1B[A"],
  ["↓", "\x1B[B"]
];
function Shell({ d, user, name, shown }) {
  const running = (d.taskList ?? []).filter((x) => x.phase === "running").map((x) => `${x.role}[${x.index}]`);
  const asked = place.value.query.get("task") ?? "";
  const chosen2 = useSignal11("");
  if (shown && asked && asked !== chosen2.peek()) chosen2.value = asked;
  const task = chosen2.value || running[0] || "";
  const round2 = useSignal11(0);
  const state = useSignal11("opening");
  const end = useSignal11({});
  const error = useSignal11(null);
  const unloaded = useSignal11(false);
  const box = useRef6(null);
  const frame = useRef6(null);
  const screen = useRef6(null);
  const opened = running.length > 0 || state.value !== "opening";
  useEffect14(() => {
    const m = /^(.+)\[(\d+)\]$/.exec(task);
    if (!m || !box.current) return;
    const stop = new AbortController();
    chosen2.value = task;
    state.value = "opening";
    end.value = {};
    error.value = null;
    let send = (_channel, _data) => {
    };
    const begin3 = async () => {
      const file = await load("terminal").catch(() => null);
      if (stop.signal.aborted) return;
      if (!file) {
        unloaded.value = true;
        return;
      }
      const s = file.open(box.current, {
        label: t("openShell", { task }),
        typed: (data) => send(stdin, data),
        resized: (columns9, rows) => send(resize, new TextEncoder().encode(JSON.stringify({ Width: columns9, Height: rows }))),
        copied: (text2) => void copy(text2),
        left: () => frame.current?.querySelector("select")?.focus()
      });
      screen.current = s;
      stop.signal.addEventListener("abort", () => s.end());
      await connect(
        user,
        name,
        { role: m[1], index: m[2] },
        s,
        (to) => {
          send = to;
          state.value = "open";
          s.focus();
        },
        (e) => {
          if (stop.signal.aborted) return;
          end.value = e;
          state.value = "ended";
        },
        stop.signal
      );
    };
    begin3().catch((e) => {
      if (stop.signal.aborted) return;
      error.value = failure(e);
      state.value = "ended";
    });
    return () => {
      stop.abort();
      screen.current = null;
    };
  }, [task, round2.value, opened]);
  useEffect14(() => {
    const leaves = (e) => {
      if (state.value === "open") e.preventDefault();
    };
    const view = window.visualViewport;
    const fit = () => {
      if (frame.current) frame.current.style.maxHeight = view && innerWidth <= 720 ? `${view.height}px` : "";
    };
    fit();
    view?.addEventListener("resize", fit);
    addEventListener("beforeunload", leaves);
    return () => {
      view?.removeEventListener("resize", fit);
      removeEventListener("beforeunload", leaves);
    };
  }, []);
  if (!opened) return shown ? /* @__PURE__ */ jsx14("p", { class: "empty", children: t("shell.none") }) : null;
  const paste = async () => {
    try {
      screen.current?.paste(await navigator.clipboard.readText());
    } catch {
      toast(t("pasteKeys"));
    }
    screen.current?.focus();
  };
  const says = () => {
    if (state.value === "opening") return t("shell.opening");
    if (state.value === "open") return t("shell.open");
    if (end.value.code !== void 0) return t("shell.ended", { code: end.value.code });
    return end.value.why || t("shell.cut");
  };
  return /* @__PURE__ */ jsxs14("section", { class: "shell", ref: frame, hidden: !shown, "aria-label": t("shell"), children: [
    /* @__PURE__ */ jsxs14("div", { class: "filters", children: [
      /* @__PURE__ */ jsx14("a", { class: "button square back", href: address(place.value.path), title: t("backToJob"), "aria-label": t("backToJob"), children: /* @__PURE__ */ jsx14(Icon, { name: "back" }) }),
      /* @__PURE__ */ jsx14("select", { "aria-label": t("task"), value: task, onChange: (e) => setQuery({ task: e.currentTarget.value }), children: [.../* @__PURE__ */ new Set([...running, task])].map((x) => /* @__PURE__ */ jsx14("option", { value: x, children: x }, x)) }),
      /* @__PURE__ */ jsxs14("button", { type: "button", onClick: () => void copy(screen.current?.selection() ?? ""), children: [
        /* @__PURE__ */ jsx14(Icon, { name: "copy" }),
        " ",
        t("copy")
      ] }),
      /* @__PURE__ */ jsxs14("button", { type: "button", onClick: () => void paste(), children: [
        /* @__PURE__ */ jsx14(Icon, { name: "file" }),
        " ",
        t("paste")
      ] }),
      /* @__PURE__ */ jsx14("span", { class: state.value === "ended" ? end.value.code === 0 ? "good" : "bad" : "faint", role: "status", children: says() }),
      state.value === "ended" ? /* @__PURE__ */ jsxs14("button", { type: "button", class: "primary", onClick: () => round2.value++, children: [
        /* @__PURE__ */ jsx14(Icon, { name: "retry" }),
        " ",
        t("shell.again")
      ] }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx14(Problem, { of: error.value }) : null,
    unloaded.value ? /* @__PURE__ */ jsx14("p", { class: "note", children: t("shell.failed") }) : null,
    /* @__PURE__ */ jsx14("div", { class: "terminal-frame", children: /* @__PURE__ */ jsx14("div", { ref: box }) }),
    /* @__PURE__ */ jsx14("div", { class: "softkeys", role: "group", "aria-label": t("shell.keys"), children: keys.map(([label, sends]) => /* @__PURE__ */ jsx14(
      "button",
      {
        type: "button",
        onClick: () => {
          screen.current?.type(sends);
          screen.current?.focus();
        },
        children: label
      },
      label
    )) })
  ] });
}

// pkg/portal/web/src/job.tsx
import { Fragment as Fragment14, jsx as jsx15, jsxs as jsxs15 } from "./library.js";
var done = ["succeeded", "failed", "stopped", "deleted"];
function Exit({ of }) {
  const c = of.completion;
  if (!c) return null;
  return /* @__PURE__ */ jsxs15("span", { class: c.code === 0 ? "good" : "bad", title: c.diagnostics, children: [
    c.code,
    c.phrase && c.phrase !== "Succeeded" ? /* @__PURE__ */ jsxs15("span", { class: "faint", children: [
      " ",
      c.phrase
    ] }) : null
  ] });
}
function useJob(user, name, round2) {
  const detail = useSignal12(null);
  const error = useSignal12(null);
  useEffect15(() => {
    const stop = new AbortController();
    detail.value = null;
    error.value = null;
    const path = { user, name };
    lasting(
      stop.signal,
      (alive2) => frames("GET /api/v3/jobs/{user}/{name}/follow", { path }, stop.signal, (f) => {
        if (f.detail) {
          alive2();
          detail.value = f.detail;
        }
        if (f.problem) lost.value = new Failure(503, "UnavailableError", f.problem);
        if (f.back) lost.value = null;
      })
    ).catch((e) => {
      if (!stop.signal.aborted) error.value = failure(e);
    });
    return () => {
      stop.abort();
      lost.value = null;
    };
  }, [user, name, round2]);
  return { detail, error };
}
function useOf(change, read3) {
  const value = useSignal12(null);
  const error = useSignal12(null);
  useEffect15(() => {
    if (!change) return;
    const stop = new AbortController();
    read3(stop.signal).then(
      (v) => {
        value.value = v;
        error.value = null;
      },
      (e) => {
        if (!stop.signal.aborted) error.value = failure(e);
      }
    );
    return () => stop.abort();
  }, [change]);
  return { value, error };
}
function mark(d) {
  return d ? [d.uid, d.state, d.position, d.retries, d.message, ...(d.taskList ?? []).map((x) => x.phase)].join() : "";
}
function Why({ d, user, name }) {
  const { value, error } = useOf(mark(d), (signal11) => call("GET /api/v3/jobs/{user}/{name}/why", { path: { user, name }, signal: signal11 }));
  if (error.value) return /* @__PURE__ */ jsx15(Problem, { of: error.value });
  const w = value.value;
  if (!w) return /* @__PURE__ */ jsx15("div", { class: "why pending", "aria-busy": "true" });
  return /* @__PURE__ */ jsxs15("div", { class: `why is-${d.state}`, children: [
    /* @__PURE__ */ jsx15("p", { class: "sentence", children: w.sentence }),
    w.remedy?.length ? /* @__PURE__ */ jsx15("ul", { class: "remedy", "aria-label": t("whatToDo"), children: w.remedy.map((r) => /* @__PURE__ */ jsx15("li", { children: r }, r)) }) : null,
    w.facts?.length || w.log?.length ? /* @__PURE__ */ jsxs15("details", { children: [
      /* @__PURE__ */ jsx15("summary", { children: t("details") }),
      /* @__PURE__ */ jsx15("dl", { children: w.facts?.map((f) => /* @__PURE__ */ jsxs15("div", { children: [
        /* @__PURE__ */ jsx15("dt", { children: f.what }),
        /* @__PURE__ */ jsx15("dd", { children: f.text })
      ] }, f.what)) }),
      w.log?.length ? /* @__PURE__ */ jsx15("pre", { "aria-label": t("lastLines"), children: w.log.join("\n") }) : null
    ] }) : null
  ] });
}
var some2 = 200;
function Tasks({ d, enter }) {
  const text2 = useSignal12("");
  const most5 = useSignal12(some2);
  const all2 = d.taskList ?? [];
  const word = text2.value.toLowerCase();
  const fits2 = (x) => !word || `${x.role}[${x.index}] ${x.phase} ${x.node ?? ""} ${x.ip ?? ""} ${x.completion?.phrase ?? ""}`.toLowerCase().includes(word);
  const rows = all2.filter(fits2);
  const counts = /* @__PURE__ */ new Map();
  for (const x of all2) counts.set(x.phase, (counts.get(x.phase) ?? 0) + 1);
  if (all2.length === 0) return /* @__PURE__ */ jsx15("p", { class: "empty", children: t("noTasks") });
  return /* @__PURE__ */ jsxs15(Fragment14, { children: [
    all2.length > 8 ? /* @__PURE__ */ jsxs15("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs15("label", { class: "search", children: [
        /* @__PURE__ */ jsx15(Icon, { name: "search" }),
        /* @__PURE__ */ jsx15("input", { type: "search", placeholder: t("filterTasks"), "aria-label": t("filterTasks"), onInput: (e) => text2.value = e.currentTarget.value })
      ] }),
      [...counts].map(([phase, n]) => /* @__PURE__ */ jsxs15("button", { type: "button", class: "bare", onClick: () => text2.value = text2.value === phase ? "" : phase, children: [
        /* @__PURE__ */ jsx15(State, { state: phase }),
        " ",
        /* @__PURE__ */ jsx15("span", { class: "faint", children: n })
      ] }, phase))
    ] }) : null,
    /* @__PURE__ */ jsxs15("table", { class: "rows tasks", children: [
      /* @__PURE__ */ jsx15("thead", { children: /* @__PURE__ */ jsxs15("tr", { children: [
        /* @__PURE__ */ jsx15("th", { children: t("task") }),
        /* @__PURE__ */ jsx15("th", { children: t("state") }),
        /* @__PURE__ */ jsx15("th", { children: t("machine") }),
        /* @__PURE__ */ jsx15("th", { class: "c-address", children: t("address") }),
        /* @__PURE__ */ jsx15("th", { children: t("exit") }),
        /* @__PURE__ */ jsx15("th", { class: "num", children: t("duration") }),
        /* @__PURE__ */ jsx15("th", { class: "num c-retries", children: t("retries") }),
        enter ? /* @__PURE__ */ jsx15("th", { class: "c-shell" }) : null
      ] }) }),
      /* @__PURE__ */ jsx15("tbody", { children: rows.slice(0, most5.value).map((x) => /* @__PURE__ */ jsxs15("tr", { children: [
        /* @__PURE__ */ jsx15("td", { class: "c-name", children: /* @__PURE__ */ jsxs15("a", { class: "whole", href: address(place.value.path, { tab: "logs", task: `${x.role}[${x.index}]` }), children: [
          x.role,
          "[",
          x.index,
          "]"
        ] }) }),
        /* @__PURE__ */ jsx15("td", { children: /* @__PURE__ */ jsx15(State, { state: x.phase }) }),
        /* @__PURE__ */ jsx15("td", { children: x.node }),
        /* @__PURE__ */ jsx15("td", { class: "c-address", children: x.ip ? /* @__PURE__ */ jsx15("code", { children: x.ip }) : null }),
        /* @__PURE__ */ jsx15("td", { children: /* @__PURE__ */ jsx15(Exit, { of: x }) }),
        /* @__PURE__ */ jsx15("td", { class: "num", children: ran({ started: x.run, completed: x.completed }) }),
        /* @__PURE__ */ jsx15("td", { class: "num c-retries", children: x.retries || "" }),
        enter ? /* @__PURE__ */ jsx15("td", { class: "c-shell", children: x.phase === "running" ? /* @__PURE__ */ jsx15("a", { class: "button square", href: address(place.value.path, { tab: "shell", task: `${x.role}[${x.index}]` }), title: t("openShell", { task: `${x.role}[${x.index}]` }), "aria-label": t("openShell", { task: `${x.role}[${x.index}]` }), children: /* @__PURE__ */ jsx15(Icon, { name: "shell" }) }) : null }) : null
      ] }, x.role + x.index)) })
    ] }),
    rows.length > most5.value ? /* @__PURE__ */ jsx15("footer", { class: "under", children: /* @__PURE__ */ jsx15("button", { type: "button", onClick: () => most5.value += 1e3, children: t("moreTasks", { n: rows.length - most5.value }) }) }) : null
  ] });
}
function Events({ d, user, name }) {
  const { value, error } = useOf(mark(d), (signal11) => call("GET /api/v3/jobs/{user}/{name}/events", { path: { user, name }, signal: signal11 }));
  if (error.value) return /* @__PURE__ */ jsx15(Problem, { of: error.value });
  if (!value.value) return /* @__PURE__ */ jsx15(Loading, {});
  const items = [...value.value.items ?? []].reverse();
  return /* @__PURE__ */ jsxs15(Fragment14, { children: [
    value.value.note ? /* @__PURE__ */ jsx15("p", { class: "note", children: value.value.note }) : null,
    items.length === 0 ? /* @__PURE__ */ jsx15("p", { class: "empty", children: t("noEvents") }) : /* @__PURE__ */ jsxs15("table", { class: "rows", children: [
      /* @__PURE__ */ jsx15("thead", { children: /* @__PURE__ */ jsxs15("tr", { children: [
        /* @__PURE__ */ jsx15("th", { children: t("time") }),
        /* @__PURE__ */ jsx15("th", { children: t("reason") }),
        /* @__PURE__ */ jsx15("th", { children: t("message") }),
        /* @__PURE__ */ jsx15("th", { class: "c-object", children: t("object") })
      ] }) }),
      /* @__PURE__ */ jsx15("tbody", { children: items.map((e) => /* @__PURE__ */ jsxs15("tr", { class: e.type === "Warning" ? "warning" : "", children: [
        /* @__PURE__ */ jsx15("td", { class: "c-time", children: /* @__PURE__ */ jsx15(Ago, { time: e.time }) }),
        /* @__PURE__ */ jsxs15("td", { children: [
          e.reason,
          e.count > 1 ? /* @__PURE__ */ jsxs15("span", { class: "faint", children: [
            " ×",
            e.count
          ] }) : null
        ] }),
        /* @__PURE__ */ jsx15("td", { class: "long", children: e.message }),
        /* @__PURE__ */ jsx15("td", { class: "c-object faint", children: e.object })
      ] }, e.uid)) })
    ] })
  ] });
}
function Config({ d }) {
  if (!d.config) return /* @__PURE__ */ jsx15("p", { class: "empty", children: t("noConfig") });
  return /* @__PURE__ */ jsxs15(Fragment14, { children: [
    /* @__PURE__ */ jsxs15("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs15("button", { type: "button", onClick: () => void copy(d.config), children: [
        /* @__PURE__ */ jsx15(Icon, { name: "copy" }),
        " ",
        t("copy")
      ] }),
      /* @__PURE__ */ jsxs15("button", { type: "button", onClick: () => save(`${d.name}.yaml`, [d.config], "text/yaml"), children: [
        /* @__PURE__ */ jsx15(Icon, { name: "down" }),
        " ",
        t("download")
      ] }),
      d.config.includes("******") ? /* @__PURE__ */ jsx15("span", { class: "faint", children: t("masked") }) : null
    ] }),
    /* @__PURE__ */ jsx15("pre", { class: "code", children: d.config })
  ] });
}
function Attempt({ a }) {
  return /* @__PURE__ */ jsxs15("details", { class: "attempt", children: [
    /* @__PURE__ */ jsxs15("summary", { children: [
      /* @__PURE__ */ jsxs15("b", { children: [
        t("attempt"),
        " ",
        a.id
      ] }),
      /* @__PURE__ */ jsx15(Ago, { time: a.started }),
      /* @__PURE__ */ jsx15("span", { children: ran({ started: a.run ?? a.started, completed: a.completed }) }),
      /* @__PURE__ */ jsx15(Exit, { of: a })
    ] }),
    a.completion?.trigger?.message ? /* @__PURE__ */ jsx15("p", { children: a.completion.trigger.message }) : null,
    /* @__PURE__ */ jsxs15("table", { class: "rows", children: [
      /* @__PURE__ */ jsx15("thead", { children: /* @__PURE__ */ jsxs15("tr", { children: [
        /* @__PURE__ */ jsx15("th", { children: t("task") }),
        /* @__PURE__ */ jsx15("th", { class: "num", children: t("attempt") }),
        /* @__PURE__ */ jsx15("th", { children: t("machine") }),
        /* @__PURE__ */ jsx15("th", { children: t("started") }),
        /* @__PURE__ */ jsx15("th", { class: "num", children: t("duration") }),
        /* @__PURE__ */ jsx15("th", { children: t("exit") })
      ] }) }),
      /* @__PURE__ */ jsx15("tbody", { children: (a.tasks ?? []).slice(0, 500).map((x) => /* @__PURE__ */ jsxs15("tr", { children: [
        /* @__PURE__ */ jsxs15("td", { children: [
          x.role,
          "[",
          x.index,
          "]"
        ] }),
        /* @__PURE__ */ jsx15("td", { class: "num", children: x.id }),
        /* @__PURE__ */ jsx15("td", { children: x.node }),
        /* @__PURE__ */ jsx15("td", { children: /* @__PURE__ */ jsx15(Ago, { time: x.started }) }),
        /* @__PURE__ */ jsx15("td", { class: "num", children: ran({ started: x.run, completed: x.completed }) }),
        /* @__PURE__ */ jsx15("td", { children: /* @__PURE__ */ jsx15(Exit, { of: x }) })
      ] }, x.role + x.index + "." + x.id)) })
    ] })
  ] });
}
var tabs2 = ["overview", "logs", "events", "config", "attempts", "shell"];
function JobPage({ user, name }) {
  const round2 = useSignal12(0);
  const { detail, error } = useJob(user, name, round2.value);
  const d = detail.value;
  const path = { user, name };
  const allowed = useOf(d ? d.uid : "", (signal11) => call("GET /api/v3/jobs/{user}/{name}/allowed", { path, signal: signal11 }));
  const may = (what) => allowed.value.value?.operations?.includes(what) ?? false;
  const isDone = done.includes(d?.state ?? "");
  const shell = useSignal12(false);
  const asked = place.value.query.get("tab");
  const offered = tabs2.filter((x) => x !== "shell" || shell.value || may("enter") && !isDone);
  const tab = offered.find((x) => x === asked) ?? "overview";
  useEffect15(() => {
    if (tab === "shell") shell.value = true;
  }, [tab]);
  const full = user === me.value?.name ? name : `${user}/${name}`;
  useEffect15(() => {
    document.title = `${name} – paictl`;
  }, [name]);
  useKeys(Object.fromEntries(offered.map((x, i) => [String(i + 1), () => setQuery({ tab: x === "overview" ? void 0 : x, task: void 0 })])));
  if (!d) return error.value ? /* @__PURE__ */ jsx15(Problem, { of: error.value, again: () => round2.value++ }) : /* @__PURE__ */ jsx15(Loading, {});
  const act = (what) => ask2({
    title: t(`ask.${what}`, { job: full }),
    text: t(`ask.${what}.more`),
    yes: t(what),
    danger: what !== "retry",
    act: async () => {
      if (what === "stop") await call("POST /api/v3/jobs/{user}/{name}/stop", { path });
      if (what === "retry") await call("POST /api/v3/jobs/{user}/{name}/retry", { path });
      if (what === "remove") await call("DELETE /api/v3/jobs/{user}/{name}", { path });
      toast(t(`done.${what}`));
      if (what === "remove") go(address(["jobs"]));
      else round2.value++;
    }
  });
  const task = place.value.query.get("task");
  const command2 = tab === "shell" ? `paictl job shell ${quoted(full)}${task ? ` --task ${quoted(task)}` : ""}` : tab === "logs" ? `paictl job logs ${quoted(full)} -f` : tab === "events" ? `paictl job events ${quoted(full)}` : `paictl job get ${quoted(full)}`;
  const route = tab === "logs" ? "GET /api/v3/jobs/{user}/{name}/logs" : tab === "events" ? "GET /api/v3/jobs/{user}/{name}/events" : "GET /api/v3/jobs/{user}/{name}";
  return /* @__PURE__ */ jsxs15("section", { class: "page job", children: [
    /* @__PURE__ */ jsxs15("header", { class: "top", children: [
      /* @__PURE__ */ jsxs15("nav", { class: "crumbs", children: [
        /* @__PURE__ */ jsx15("a", { href: address(["jobs"]), children: t("jobs") }),
        /* @__PURE__ */ jsx15(Icon, { name: "chevron" }),
        /* @__PURE__ */ jsx15("a", { href: address(["jobs"], { user }), children: user }),
        /* @__PURE__ */ jsx15(Icon, { name: "chevron" })
      ] }),
      /* @__PURE__ */ jsx15("h1", { title: name, children: name }),
      /* @__PURE__ */ jsx15(State, { state: d.state, position: d.position, deleted: d.deleted }),
      /* @__PURE__ */ jsx15("span", { class: "grow" }),
      /* @__PURE__ */ jsxs15("div", { class: "actions", children: [
        d.config ? /* @__PURE__ */ jsxs15("a", { class: "button", href: address(["submit"], { clone: `${user}/${name}` }), children: [
          /* @__PURE__ */ jsx15(Icon, { name: "copy" }),
          " ",
          t("clone")
        ] }) : null,
        may("retry") && isDone ? /* @__PURE__ */ jsxs15("button", { type: "button", onClick: () => act("retry"), children: [
          /* @__PURE__ */ jsx15(Icon, { name: "retry" }),
          " ",
          t("retry")
        ] }) : null,
        may("stop") && !isDone && d.state !== "stopping" && d.state !== "deleting" ? /* @__PURE__ */ jsxs15("button", { type: "button", class: "danger", onClick: () => act("stop"), children: [
          /* @__PURE__ */ jsx15(Icon, { name: "stop" }),
          " ",
          t("stop")
        ] }) : null,
        /* @__PURE__ */ jsx15(
          Menu,
          {
            label: t("more"),
            icon: "more",
            items: [
              { label: t("copyName"), icon: "copy", run: () => void copy(full) },
              { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2) },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curl(route, { path })) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
              ...d.config ? [{ label: t("saveTemplate"), icon: "file", run: () => go(address(["templates", "new"], { job: `${user}/${name}` })) }] : [],
              ...may("delete") && d.live ? [null, { label: t("remove"), icon: "trash", danger: true, run: () => act("remove") }] : []
            ]
          }
        )
      ] })
    ] }),
    error.value ? /* @__PURE__ */ jsx15(Problem, { of: error.value, again: () => round2.value++ }) : null,
    /* @__PURE__ */ jsx15(Why, { d, user, name }),
    d.note ? /* @__PURE__ */ jsx15("p", { class: "note", children: d.note }) : null,
    /* @__PURE__ */ jsxs15("dl", { class: "facts", children: [
      /* @__PURE__ */ jsx15(Fact, { name: t("owner"), value: d.user }),
      /* @__PURE__ */ jsx15(Fact, { name: t("vc"), value: d.virtualCluster }),
      /* @__PURE__ */ jsx15(Fact, { name: t("gpus"), value: d.gpus > 0 ? d.gpus : d.gpus < 0 ? "?" : "–" }),
      /* @__PURE__ */ jsx15(Fact, { name: t("tasks"), value: d.tasks }),
      /* @__PURE__ */ jsx15(Fact, { name: t("priority"), value: d.priority }),
      /* @__PURE__ */ jsx15(Fact, { name: t("submitted"), value: /* @__PURE__ */ jsx15(Ago, { time: d.submitted }) }),
      /* @__PURE__ */ jsx15(Fact, { name: t("duration"), value: ran(d) }),
      /* @__PURE__ */ jsx15(Fact, { name: t("retries"), value: d.retries || void 0 }),
      /* @__PURE__ */ jsx15(Fact, { name: t("tags"), value: d.tags?.length ? d.tags.map((x) => /* @__PURE__ */ jsx15("span", { class: "tag", children: x }, x)) : void 0 })
    ] }),
    /* @__PURE__ */ jsx15("div", { class: "tabs", role: "tablist", children: offered.map((x) => /* @__PURE__ */ jsx15("a", { role: "tab", "aria-selected": x === tab, href: address(place.value.path, { tab: x === "overview" ? void 0 : x }), children: maybe(x, x) }, x)) }),
    /* @__PURE__ */ jsxs15("div", { class: "tab", role: "tabpanel", children: [
      tab === "overview" ? /* @__PURE__ */ jsx15(Tasks, { d, enter: may("enter") && !isDone }) : null,
      tab === "logs" ? /* @__PURE__ */ jsx15(Logs, { d, user, name }, d.uid) : null,
      tab === "events" ? /* @__PURE__ */ jsx15(Events, { d, user, name }) : null,
      tab === "config" ? /* @__PURE__ */ jsx15(Config, { d }) : null,
      tab === "attempts" ? d.attempts?.length ? d.attempts.map((a) => /* @__PURE__ */ jsx15(Attempt, { a }, a.id)) : /* @__PURE__ */ jsx15("p", { class: "empty", children: t("noAttempts") }) : null,
      shell.value ? /* @__PURE__ */ jsx15(Shell, { d, user, name, shown: tab === "shell" }, d.uid) : null
    ] })
  ] });
}
function Fact({ name, value }) {
  return value === void 0 || value === "" ? null : /* @__PURE__ */ jsxs15("div", { children: [
    /* @__PURE__ */ jsx15("dt", { children: name }),
    /* @__PURE__ */ jsx15("dd", { children: value })
  ] });
}

// pkg/portal/web/src/machines.tsx
import { useEffect as useEffect16, useMemo as useMemo5, useRef as useRef7 } from "./library.js";
import { Fragment as Fragment15, jsx as jsx16, jsxs as jsxs16 } from "./library.js";
var shows = ["all", "free", "troubled"];
function chosen(m, show, word, sku) {
  if (sku && m.sku !== sku) return false;
  if (word && !m.name.toLowerCase().includes(word.toLowerCase())) return false;
  if (show === "free") return !down(m) && (m.gpus ?? []).some((g) => !g.owner && !broken(g));
  return show !== "troubled" || troubled(m);
}
function MachineState({ m }) {
  const key2 = m.state !== "Ready" ? "bad" : m.cordoned || m.pressure?.length ? "wait" : "good";
  return /* @__PURE__ */ jsxs16("span", { class: `state ${key2}`, children: [
    /* @__PURE__ */ jsx16("i", { class: "dot" }),
    maybe("machine." + m.state, m.state),
    m.cordoned ? /* @__PURE__ */ jsxs16("span", { class: "faint", children: [
      " ",
      t("cordoned")
    ] }) : null
  ] });
}
function GPUs({ m }) {
  const all2 = m.gpus ?? [];
  if (all2.length === 0) return /* @__PURE__ */ jsx16("span", { class: "faint", children: "–" });
  const sick = all2.filter(broken).length;
  return /* @__PURE__ */ jsxs16(Fragment15, { children: [
    all2.filter((g) => g.owner).length,
    " / ",
    all2.length,
    sick ? /* @__PURE__ */ jsxs16("span", { class: "broken", children: [
      " ",
      t("broken", { n: sick })
    ] }) : null
  ] });
}
function percent(a) {
  return a.total ? Math.round(100 * a.used / a.total) + " %" : "–";
}
function Counts({ c }) {
  const n = c.counts;
  return /* @__PURE__ */ jsxs16("p", { class: "numbers", children: [
    /* @__PURE__ */ jsxs16("span", { children: [
      /* @__PURE__ */ jsx16("b", { children: n.MachinesReady }),
      " ",
      t("ofMachines", { n: n.Machines })
    ] }),
    /* @__PURE__ */ jsxs16("span", { children: [
      /* @__PURE__ */ jsx16("b", { children: n.GPUsUsed }),
      " ",
      t("ofGPUs", { n: n.GPUs })
    ] }),
    n.GPUsSick ? /* @__PURE__ */ jsx16("span", { class: "broken", children: t("broken", { n: n.GPUsSick }) }) : null
  ] });
}
function Sources({ c, names: names3 }) {
  const old = names3.map((n) => source(c, n)).filter((s) => s && s.state !== "current" && s.state !== "loading");
  return /* @__PURE__ */ jsx16(Fragment15, { children: old.map((s) => /* @__PURE__ */ jsxs16("p", { class: "note", children: [
    t("sourceIs", { name: maybe("source." + s.name, s.name), state: maybe("sourceState." + s.state, s.state) }),
    " ",
    s.since && s.state === "stale" ? /* @__PURE__ */ jsx16(Ago, { time: s.since }) : null,
    " ",
    s.message,
    s.hint ? /* @__PURE__ */ jsxs16("span", { class: "faint", children: [
      " ",
      s.hint
    ] }) : null
  ] }, s.name)) });
}
function Machines() {
  const { cluster, error } = useCluster("machines");
  const q = place.value.query;
  const by = ways.includes(q.get("by") ?? "") ? q.get("by") : "use";
  const show = q.get("show") ?? "all";
  const [word, sku, open, wall] = [q.get("find") ?? "", q.get("sku") ?? "", q.get("machine"), q.get("view") === "wall"];
  const search = useRef7(null);
  const c = cluster.value;
  const skus = useMemo5(() => [...new Set((c?.machines ?? []).map((m) => m.sku ?? "").filter(Boolean))].sort(), [c?.machines]);
  const machines = useMemo5(() => (c?.machines ?? []).filter((m) => chosen(m, show, word, sku)).sort(byName), [c?.machines, show, word, sku]);
  useEffect16(() => {
    document.title = t("machines") + " – paictl";
  }, []);
  useEffect16(() => {
    document.documentElement.classList.toggle("wall", wall);
    return () => document.documentElement.classList.remove("wall");
  }, [wall]);
  useKeys({
    "/": () => search.current?.focus(),
    Escape: () => open ? setQuery({ machine: void 0 }) : wall ? setQuery({ view: void 0 }) : void 0
  });
  const one = open ? c?.machines?.find((m) => m.name === open) : void 0;
  return /* @__PURE__ */ jsxs16("section", { class: "page machines", children: [
    /* @__PURE__ */ jsxs16("header", { class: "top", children: [
      /* @__PURE__ */ jsx16("h1", { children: wall ? c?.name : t("machines") }),
      c ? /* @__PURE__ */ jsx16(Counts, { c }) : null,
      /* @__PURE__ */ jsx16("span", { class: "grow" }),
      /* @__PURE__ */ jsx16("div", { class: "segments", role: "group", "aria-label": t("mapBy"), children: ways.map((way) => /* @__PURE__ */ jsx16("button", { type: "button", "aria-pressed": by === way, onClick: () => setQuery({ by: way === "use" ? void 0 : way }), children: t("mapBy." + way) }, way)) }),
      /* @__PURE__ */ jsxs16("button", { type: "button", title: t("wallMore"), onClick: () => setQuery({ view: wall ? void 0 : "wall" }), children: [
        /* @__PURE__ */ jsx16(Icon, { name: wall ? "close" : "page" }),
        " ",
        t(wall ? "wallEnd" : "wall")
      ] }),
      wall ? null : /* @__PURE__ */ jsx16(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl status --once") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/status", { query: { parts: ["machines"] } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      )
    ] }),
    wall ? null : /* @__PURE__ */ jsxs16("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs16("label", { class: "search", children: [
        /* @__PURE__ */ jsx16(Icon, { name: "search" }),
        /* @__PURE__ */ jsx16("input", { ref: search, type: "search", placeholder: t("searchMachines"), "aria-label": t("searchMachines"), defaultValue: word, onInput: (e) => setQuery({ find: e.currentTarget.value || void 0 }), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
        /* @__PURE__ */ jsx16("kbd", { children: "/" })
      ] }),
      /* @__PURE__ */ jsx16("div", { class: "segments", role: "group", "aria-label": t("state"), children: shows.map((name) => /* @__PURE__ */ jsx16("button", { type: "button", "aria-pressed": show === name, onClick: () => setQuery({ show: name === "all" ? void 0 : name }), children: t("show." + name) }, name)) }),
      skus.length > 1 ? /* @__PURE__ */ jsxs16("select", { "aria-label": t("sku"), value: sku, onChange: (e) => setQuery({ sku: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx16("option", { value: "", children: t("anySKU") }),
        skus.map((s) => /* @__PURE__ */ jsx16("option", { value: s, children: s }, s))
      ] }) : null
    ] }),
    error.value ? /* @__PURE__ */ jsx16(Problem, { of: error.value }) : null,
    c ? /* @__PURE__ */ jsx16(Sources, { c, names: by === "use" ? ["api", "prometheus"] : ["api"] }) : null,
    !c ? error.value ? null : /* @__PURE__ */ jsx16(Loading, {}) : machines.length === 0 ? /* @__PURE__ */ jsxs16("div", { class: "empty", children: [
      /* @__PURE__ */ jsx16("p", { children: c.machines?.length ? t("noMachineMatch") : t("noMachines") }),
      c.machines?.length ? /* @__PURE__ */ jsx16("button", { type: "button", onClick: () => go(address(["machines"])), children: t("clearFilters") }) : null
    ] }) : /* @__PURE__ */ jsxs16(Fragment15, { children: [
      /* @__PURE__ */ jsx16(GPUMap, { machines, by, fit: wall ? innerHeight - 170 : 380, largest: wall ? 44 : 20, open: (name) => setQuery({ machine: name }) }),
      /* @__PURE__ */ jsx16(Legend, { machines, by }),
      wall ? null : /* @__PURE__ */ jsx16(List, { machines })
    ] }),
    one ? /* @__PURE__ */ jsx16(One, { m: one, close: () => setQuery({ machine: void 0 }) }) : null
  ] });
}
var most4 = 200;
function List({ machines }) {
  return /* @__PURE__ */ jsxs16(Fragment15, { children: [
    /* @__PURE__ */ jsxs16("table", { class: "rows", children: [
      /* @__PURE__ */ jsx16("thead", { children: /* @__PURE__ */ jsxs16("tr", { children: [
        /* @__PURE__ */ jsx16("th", { children: t("name") }),
        /* @__PURE__ */ jsx16("th", { children: t("state") }),
        /* @__PURE__ */ jsx16("th", { children: t("sku") }),
        /* @__PURE__ */ jsx16("th", { class: "num", children: t("gpus") }),
        /* @__PURE__ */ jsx16("th", { class: "num wide", children: t("cpuUse") }),
        /* @__PURE__ */ jsx16("th", { class: "num wide", children: t("memoryUse") }),
        /* @__PURE__ */ jsx16("th", { class: "num wide", children: t("pods") }),
        /* @__PURE__ */ jsx16("th", { class: "wide", children: t("sinceTime") })
      ] }) }),
      /* @__PURE__ */ jsx16("tbody", { children: machines.slice(0, most4).map((m) => /* @__PURE__ */ jsxs16("tr", { "data-machine": m.name, children: [
        /* @__PURE__ */ jsx16("td", { children: /* @__PURE__ */ jsx16("a", { class: "whole", href: address(["machines"], { ...Object.fromEntries(place.value.query), machine: m.name }), children: m.name }) }),
        /* @__PURE__ */ jsx16("td", { title: m.message, children: /* @__PURE__ */ jsx16(MachineState, { m }) }),
        /* @__PURE__ */ jsx16("td", { children: m.sku }),
        /* @__PURE__ */ jsx16("td", { class: "num", children: /* @__PURE__ */ jsx16(GPUs, { m }) }),
        /* @__PURE__ */ jsx16("td", { class: "num wide", children: percent(m.cpu) }),
        /* @__PURE__ */ jsx16("td", { class: "num wide", children: percent(m.memory) }),
        /* @__PURE__ */ jsx16("td", { class: "num wide", children: m.pods }),
        /* @__PURE__ */ jsx16("td", { class: "wide", children: /* @__PURE__ */ jsx16(Ago, { time: m.since }) })
      ] }, m.name)) })
    ] }),
    /* @__PURE__ */ jsx16("footer", { class: "under", children: /* @__PURE__ */ jsx16("span", { class: "faint", children: t(machines.length > most4 ? "machinesMore" : "machinesShown", { n: machines.length, most: most4 }) }) })
  ] });
}
function Held({ g }) {
  const o = g.owner;
  if (!o) return /* @__PURE__ */ jsx16("span", { class: "faint", children: broken(g) ? "" : t("mapFree") });
  const [user, name] = (o.job ?? "").split("/");
  return /* @__PURE__ */ jsxs16(Fragment15, { children: [
    user && name ? /* @__PURE__ */ jsx16("a", { href: address(["jobs", user, name]), children: o.job }) : /* @__PURE__ */ jsx16("span", { class: "faint", children: o.pod || t("mapSomeone") }),
    " ",
    o.task ? /* @__PURE__ */ jsx16("span", { class: "faint", children: o.task }) : null
  ] });
}
function One({ m, close }) {
  const box = useRef7(null);
  useEffect16(() => box.current?.focus(), [m.name]);
  const facts = [
    [t("sku"), m.sku],
    [t("roles"), m.roles?.join(", ")],
    [t("machineAddress"), m.address],
    [t("gpuModel"), [...new Set((m.gpus ?? []).map((g) => g.model).filter(Boolean))].join(", ")],
    [t("driver"), m.driver],
    ["Kubernetes", m.kubelet],
    [t("kernel"), m.kernel],
    [t("os"), m.os]
  ];
  return /* @__PURE__ */ jsxs16("aside", { class: "drawer", ref: box, tabIndex: -1, "aria-label": m.name, children: [
    /* @__PURE__ */ jsxs16("header", { class: "top", children: [
      /* @__PURE__ */ jsx16("h2", { children: m.name }),
      /* @__PURE__ */ jsx16(MachineState, { m }),
      /* @__PURE__ */ jsx16("span", { class: "grow" }),
      /* @__PURE__ */ jsx16("button", { type: "button", class: "square", "aria-label": t("close"), title: t("close"), onClick: close, children: /* @__PURE__ */ jsx16(Icon, { name: "close" }) })
    ] }),
    m.message ? /* @__PURE__ */ jsx16("p", { class: "note", children: m.message }) : null,
    m.hint ? /* @__PURE__ */ jsx16("p", { class: "faint small", children: m.hint }) : null,
    m.pressure?.length ? /* @__PURE__ */ jsx16("p", { class: "note", children: m.pressure.join(", ") }) : null,
    /* @__PURE__ */ jsxs16("dl", { class: "facts small", children: [
      facts.map(
        ([name, value]) => value ? /* @__PURE__ */ jsxs16("div", { children: [
          /* @__PURE__ */ jsx16("dt", { children: name }),
          /* @__PURE__ */ jsx16("dd", { children: value })
        ] }, name) : null
      ),
      /* @__PURE__ */ jsxs16("div", { children: [
        /* @__PURE__ */ jsx16("dt", { children: t("cpuUse") }),
        /* @__PURE__ */ jsx16("dd", { children: t("coresOf", { used: m.cpu.used / 1e3, of: m.cpu.total / 1e3 }) })
      ] }),
      /* @__PURE__ */ jsxs16("div", { children: [
        /* @__PURE__ */ jsx16("dt", { children: t("memoryUse") }),
        /* @__PURE__ */ jsx16("dd", { children: t("gibOf", { used: Math.round(m.memory.used / 102.4) / 10, of: Math.round(m.memory.total / 102.4) / 10 }) })
      ] })
    ] }),
    m.gpus?.length ? /* @__PURE__ */ jsxs16("table", { class: "rows small", children: [
      /* @__PURE__ */ jsx16("thead", { children: /* @__PURE__ */ jsxs16("tr", { children: [
        /* @__PURE__ */ jsx16("th", { class: "num", children: "GPU" }),
        /* @__PURE__ */ jsx16("th", { children: t("health") }),
        /* @__PURE__ */ jsx16("th", { children: t("holder") }),
        /* @__PURE__ */ jsx16("th", { class: "num", children: t("useNow") })
      ] }) }),
      /* @__PURE__ */ jsx16("tbody", { children: m.gpus.map((g) => /* @__PURE__ */ jsxs16("tr", { title: explain(m, g), children: [
        /* @__PURE__ */ jsx16("td", { class: "num", children: g.index }),
        /* @__PURE__ */ jsxs16("td", { class: broken(g) ? "broken" : "", children: [
          maybe("gpu." + g.health, g.health),
          g.reason ? /* @__PURE__ */ jsx16("div", { class: "faint", children: g.reason }) : null
        ] }),
        /* @__PURE__ */ jsx16("td", { children: /* @__PURE__ */ jsx16(Held, { g }) }),
        /* @__PURE__ */ jsx16("td", { class: "num", children: g.use ? Math.round(g.use.utilisation) + " %" : /* @__PURE__ */ jsx16("span", { class: "faint", children: "–" }) })
      ] }, g.index)) })
    ] }) : /* @__PURE__ */ jsx16("p", { class: "faint", children: t("noGPUs") }),
    me.value?.grants.administrator ? /* @__PURE__ */ jsxs16("p", { class: "buttons", children: [
      /* @__PURE__ */ jsxs16("button", { type: "button", onClick: () => void copy("paictl node gpu list " + m.name), children: [
        /* @__PURE__ */ jsx16(Icon, { name: "copy" }),
        " paictl node gpu list"
      ] }),
      /* @__PURE__ */ jsxs16("button", { type: "button", onClick: () => void copy("paictl node cordon " + m.name), children: [
        /* @__PURE__ */ jsx16(Icon, { name: "copy" }),
        " paictl node ",
        m.cordoned ? "uncordon" : "cordon"
      ] })
    ] }) : null
  ] });
}

// pkg/portal/web/src/queue.tsx
import { useEffect as useEffect17 } from "./library.js";
import { jsx as jsx17, jsxs as jsxs17 } from "./library.js";
function wants(g) {
  if (g.gpus > 0) return t("wantsGPUs", { n: g.gpus });
  if (g.shareOfGPUs) return t("wantsShare", { n: g.shareOfGPUs });
  return g.milliCPU ? t("wantsCPU", { n: g.milliCPU / 1e3 }) : "–";
}
function QueuePage() {
  const { cluster, error } = useCluster("virtualClusters");
  useEffect17(() => {
    document.title = t("queue") + " – paictl";
  }, []);
  const c = cluster.value;
  const all2 = c?.virtualClusters ?? [];
  const asked = place.value.query.get("vc");
  const busiest = [...all2].sort((a, b) => b.waitingGangs - a.waitingGangs)[0];
  const v = all2.find((x) => x.name === asked) ?? (asked ? void 0 : busiest);
  const command2 = "paictl job queue" + (v ? " --vc " + quoted(v.name) : "");
  const gangs = v?.queue ?? [];
  return /* @__PURE__ */ jsxs17("section", { class: "page", children: [
    /* @__PURE__ */ jsxs17("header", { class: "top", children: [
      /* @__PURE__ */ jsx17("h1", { children: t("queue") }),
      /* @__PURE__ */ jsx17("span", { class: "grow" }),
      /* @__PURE__ */ jsx17(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/queue", { query: { vc: v?.name } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx17(Problem, { of: error.value }) : null,
    c ? /* @__PURE__ */ jsx17(Sources, { c, names: ["scheduler"] }) : null,
    !c ? error.value ? null : /* @__PURE__ */ jsx17(Loading, {}) : null,
    all2.length > 0 ? /* @__PURE__ */ jsx17("div", { class: "filters", children: /* @__PURE__ */ jsx17("div", { class: "segments", role: "group", "aria-label": t("vc"), children: all2.map((x) => /* @__PURE__ */ jsxs17("button", { type: "button", "aria-pressed": x.name === v?.name, onClick: () => setQuery({ vc: x.name }), children: [
      x.name,
      " ",
      x.waitingGangs ? /* @__PURE__ */ jsx17("span", { class: "count", children: x.waitingGangs }) : null
    ] }, x.name)) }) }) : c && source(c, "scheduler")?.state === "current" ? /* @__PURE__ */ jsx17("p", { class: "empty", children: t("noVCs") }) : null,
    asked && c && !v ? /* @__PURE__ */ jsx17("p", { class: "empty", children: t("noSuchVC", { name: asked }) }) : null,
    v ? /* @__PURE__ */ jsxs17("div", { class: "queue", children: [
      /* @__PURE__ */ jsx17("div", { class: "vcs", children: /* @__PURE__ */ jsx17(VC, { v }) }),
      gangs.length === 0 ? /* @__PURE__ */ jsx17("p", { class: "empty", children: t("nobodyWaits") }) : /* @__PURE__ */ jsxs17("table", { class: "rows", children: [
        /* @__PURE__ */ jsx17("thead", { children: /* @__PURE__ */ jsxs17("tr", { children: [
          /* @__PURE__ */ jsx17("th", { class: "num", children: "#" }),
          /* @__PURE__ */ jsx17("th", { children: t("name") }),
          /* @__PURE__ */ jsx17("th", { children: t("wants") }),
          /* @__PURE__ */ jsx17("th", { class: "num wide", children: t("tasks") }),
          /* @__PURE__ */ jsx17("th", { class: "num wide", children: t("priority") }),
          /* @__PURE__ */ jsx17("th", { children: t("waitsSince") }),
          /* @__PURE__ */ jsx17("th", { class: "reason", children: t("waitsFor") })
        ] }) }),
        /* @__PURE__ */ jsx17("tbody", { children: gangs.map((g) => {
          const [user, name] = g.job.split("/");
          const mine = g.user && g.user === me.value?.name;
          return /* @__PURE__ */ jsxs17("tr", { class: mine ? "mine" : "", children: [
            /* @__PURE__ */ jsx17("td", { class: "num", children: g.positionInVC }),
            /* @__PURE__ */ jsx17("td", { children: user && name ? /* @__PURE__ */ jsx17("a", { href: address(["jobs", user, name]), children: g.job }) : /* @__PURE__ */ jsx17("span", { class: "faint", children: g.job }) }),
            /* @__PURE__ */ jsx17("td", { children: wants(g) }),
            /* @__PURE__ */ jsx17("td", { class: "num wide", children: g.pods }),
            /* @__PURE__ */ jsx17("td", { class: "num wide", children: g.priority }),
            /* @__PURE__ */ jsx17("td", { children: /* @__PURE__ */ jsx17(Ago, { time: g.since }) }),
            /* @__PURE__ */ jsx17("td", { class: "reason", children: g.reason })
          ] }, g.positionInVC + g.job + g.group);
        }) })
      ] })
    ] }) : null
  ] });
}

// pkg/portal/web/src/profile.tsx
import { useSignal as useSignal14 } from "./library.js";
import { useEffect as useEffect19, useRef as useRef8 } from "./library.js";

// pkg/portal/web/src/read.ts
import { useSignal as useSignal13 } from "./library.js";
import { useEffect as useEffect18 } from "./library.js";
function useRead2(key2, read3) {
  const value = useSignal13(null);
  const error = useSignal13(null);
  const busy = useSignal13(true);
  const round2 = useSignal13(0);
  useEffect18(() => {
    const stop = new AbortController();
    busy.value = true;
    read3(stop.signal).then(
      (v) => {
        if (stop.signal.aborted) return;
        value.value = v;
        error.value = null;
        busy.value = false;
      },
      (e) => {
        if (stop.signal.aborted) return;
        value.value = null;
        error.value = failure(e);
        busy.value = false;
      }
    );
    return () => stop.abort();
  }, [key2, round2.value]);
  return { value, error, busy, again: () => void round2.value++ };
}

// pkg/portal/web/src/sshkey.ts
var types = /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com)$/;
function readKey(text2) {
  const line = text2.trim();
  if (/-----BEGIN|PuTTY-User-Key-File/.test(line)) return "key.private";
  if (/[\r\n]/.test(line)) return "key.lines";
  const [type = "", encoded = "", ...comment] = line.split(/[ \t]+/);
  if (!types.test(type)) return "key.type";
  let bytes;
  try {
    bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0));
  } catch {
    return "key.cut";
  }
  const view = new DataView(bytes.buffer);
  let at = 0;
  let first = "";
  while (at + 4 <= bytes.length) {
    const n = view.getUint32(at);
    if (at === 0) first = String.fromCharCode(...bytes.slice(4, 4 + Math.min(n, 64)));
    at += 4 + n;
  }
  return at === bytes.length && first === type ? { type, comment: comment.join(" "), bytes } : "key.cut";
}
async function fingerprint(key2) {
  const sum = await crypto.subtle.digest("SHA-256", key2.bytes);
  return "SHA256:" + btoa(String.fromCharCode(...new Uint8Array(sum))).replace(/=+$/, "");
}

// pkg/portal/web/src/profile.tsx
import { Fragment as Fragment16, jsx as jsx18, jsxs as jsxs18 } from "./library.js";
function Part({ title, children }) {
  return /* @__PURE__ */ jsxs18("section", { class: "panel", children: [
    /* @__PURE__ */ jsx18("h2", { children: title }),
    children
  ] });
}
function useSend() {
  const busy = useSignal14(false);
  const error = useSignal14(null);
  const send = async (act) => {
    busy.value = true;
    error.value = null;
    try {
      await act();
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, send };
}
function Profile() {
  const name = me.value.name;
  const { value, error, again } = useRead2(name, (signal11) => call("GET /api/v3/users/{user}", { path: { user: name }, signal: signal11 }));
  useEffect19(() => {
    document.title = t("profile") + " – paictl";
  }, []);
  const u = value.value;
  const change = async (next) => {
    const was = value.value.spec;
    value.value = await call("PUT /api/v3/users/{user}", { path: { user: name }, body: { was, spec: { ...was, ...next } } });
  };
  return /* @__PURE__ */ jsxs18("section", { class: "page profile", children: [
    /* @__PURE__ */ jsxs18("header", { class: "top", children: [
      /* @__PURE__ */ jsx18("h1", { children: u?.displayName || name }),
      /* @__PURE__ */ jsx18("span", { class: "grow" }),
      /* @__PURE__ */ jsx18(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl whoami") },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/whoami", {})) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      )
    ] }),
    error.value ? /* @__PURE__ */ jsx18(Problem, { of: error.value, again }) : null,
    !u && !error.value ? /* @__PURE__ */ jsx18(Loading, {}) : null,
    /* @__PURE__ */ jsxs18("div", { class: "panels", children: [
      u ? /* @__PURE__ */ jsx18(Self, { u }) : null,
      u?.spec ? /* @__PURE__ */ jsx18(Names2, { u, change }) : null,
      u?.spec ? /* @__PURE__ */ jsx18(Keys, { u, change }) : null,
      /* @__PURE__ */ jsx18(Password2, { name }),
      /* @__PURE__ */ jsx18(Tokens2, {})
    ] })
  ] });
}
function List2({ names: names3, none: none2 }) {
  return names3.length ? /* @__PURE__ */ jsx18(Fragment16, { children: names3.map((x) => /* @__PURE__ */ jsx18("span", { class: "tag", children: x }, x)) }) : /* @__PURE__ */ jsx18("span", { class: "faint", children: none2 });
}
function Self({ u }) {
  return /* @__PURE__ */ jsxs18(Part, { title: t("account"), children: [
    /* @__PURE__ */ jsxs18("dl", { class: "pairs", children: [
      /* @__PURE__ */ jsxs18("div", { children: [
        /* @__PURE__ */ jsx18("dt", { children: t("userName") }),
        /* @__PURE__ */ jsxs18("dd", { children: [
          u.name,
          u.administrator ? /* @__PURE__ */ jsx18("span", { class: "tag official", children: t("administrator") }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs18("div", { children: [
        /* @__PURE__ */ jsx18("dt", { children: t("groups") }),
        /* @__PURE__ */ jsx18("dd", { children: /* @__PURE__ */ jsx18(List2, { names: u.groups ?? [], none: t("noGroups") }) })
      ] }),
      /* @__PURE__ */ jsxs18("div", { children: [
        /* @__PURE__ */ jsx18("dt", { children: t("storages") }),
        /* @__PURE__ */ jsx18("dd", { children: /* @__PURE__ */ jsx18(List2, { names: u.storages ?? [], none: t("noStorages") }) })
      ] }),
      u.pages?.length ? /* @__PURE__ */ jsxs18("div", { children: [
        /* @__PURE__ */ jsx18("dt", { children: t("pages") }),
        /* @__PURE__ */ jsx18("dd", { children: /* @__PURE__ */ jsx18(List2, { names: u.pages, none: "" }) })
      ] }) : null,
      u.identities?.length ? /* @__PURE__ */ jsxs18("div", { children: [
        /* @__PURE__ */ jsx18("dt", { children: t("identities") }),
        /* @__PURE__ */ jsx18("dd", { children: /* @__PURE__ */ jsx18(List2, { names: u.identities.map((i) => i.provider), none: "" }) })
      ] }) : null,
      u.lastSignIn ? /* @__PURE__ */ jsxs18("div", { children: [
        /* @__PURE__ */ jsx18("dt", { children: t("lastSignIn") }),
        /* @__PURE__ */ jsx18("dd", { children: /* @__PURE__ */ jsx18(Ago, { time: u.lastSignIn }) })
      ] }) : null
    ] }),
    /* @__PURE__ */ jsx18("h3", { children: t("vcs") }),
    u.allVirtualClusters || u.administrator ? /* @__PURE__ */ jsx18("p", { children: t("everyVC") }) : null,
    u.virtualClusters?.length ? /* @__PURE__ */ jsx18("ul", { class: "grants", children: u.virtualClusters.map((v) => /* @__PURE__ */ jsxs18("li", { children: [
      /* @__PURE__ */ jsx18("a", { href: address(["jobs"], { vc: v.name, state: "active" }), children: v.name }),
      /* @__PURE__ */ jsx18("span", { class: "faint", children: [t("grant.submit", { priority: v.maxPriority || "prod" }), v.seeJobs ? t("grant.seeJobs") : "", v.hostNetwork ? t("grant.hostNetwork") : ""].filter(Boolean).join(" · ") })
    ] }, v.name)) }) : u.allVirtualClusters || u.administrator ? null : /* @__PURE__ */ jsx18("p", { class: "faint", children: t("noVCs") })
  ] });
}
function Names2({ u, change }) {
  const form = useRef8(null);
  const { busy, error, send } = useSend();
  const submit = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const text2 = (name) => String(f.get(name) ?? "").trim() || void 0;
    void send(async () => {
      await change({ displayName: text2("displayName"), email: text2("email") });
      toast(t("done.profile"));
      void begin();
    });
  };
  return /* @__PURE__ */ jsx18(Part, { title: t("nameAndMail"), children: /* @__PURE__ */ jsxs18("form", { ref: form, class: "fields", onSubmit: submit, children: [
    error.value ? /* @__PURE__ */ jsx18(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsxs18("label", { children: [
      /* @__PURE__ */ jsx18("span", { children: t("displayName") }),
      /* @__PURE__ */ jsx18("input", { name: "displayName", defaultValue: u.displayName, maxLength: 256, autocomplete: "name" })
    ] }),
    /* @__PURE__ */ jsxs18("label", { children: [
      /* @__PURE__ */ jsx18("span", { children: t("email") }),
      /* @__PURE__ */ jsx18("input", { name: "email", type: "email", defaultValue: u.email, autocomplete: "email" })
    ] }),
    /* @__PURE__ */ jsx18("button", { type: "submit", disabled: busy.value, children: t("save") })
  ] }) });
}
function Key({ k, remove }) {
  const key2 = readKey(k.value);
  const sum = useSignal14("");
  useEffect19(() => {
    if (typeof key2 !== "string") void fingerprint(key2).then((x) => sum.value = x);
  }, [k.value]);
  return /* @__PURE__ */ jsxs18("li", { children: [
    /* @__PURE__ */ jsxs18("div", { children: [
      /* @__PURE__ */ jsx18("b", { children: k.title || typeof key2 !== "string" && key2.comment || t("untitled") }),
      /* @__PURE__ */ jsxs18("p", { class: "faint small", children: [
        typeof key2 === "string" ? "" : key2.type,
        " ",
        /* @__PURE__ */ jsx18("code", { children: sum.value })
      ] })
    ] }),
    /* @__PURE__ */ jsx18("button", { type: "button", class: "square", title: t("remove"), "aria-label": t("remove"), onClick: remove, children: /* @__PURE__ */ jsx18(Icon, { name: "trash" }) })
  ] });
}
function Keys({ u, change }) {
  const form = useRef8(null);
  const wrong = useSignal14("");
  const { busy, error, send } = useSend();
  const all2 = u.sshKeys ?? [];
  const add = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const value = String(f.get("value") ?? "").trim();
    const key2 = readKey(value);
    wrong.value = typeof key2 === "string" ? t(key2) : all2.some((k) => k.value.split(" ")[1] === value.split(/\s+/)[1]) ? t("key.known") : "";
    if (wrong.value || typeof key2 === "string") return;
    void send(async () => {
      await change({ sshKeys: [...all2, { title: String(f.get("title") ?? "").trim() || key2.comment, value }] });
      form.current?.reset();
      toast(t("done.addKey"));
    });
  };
  const remove = (k) => ask2({
    title: t("ask.removeKey", { name: k.title || t("untitled") }),
    text: t("ask.removeKey.more"),
    yes: t("remove"),
    danger: true,
    act: () => change({ sshKeys: all2.filter((x) => x !== k) })
  });
  return /* @__PURE__ */ jsxs18(Part, { title: t("sshKeys"), children: [
    all2.length ? /* @__PURE__ */ jsx18("ul", { class: "entries", children: all2.map((k) => /* @__PURE__ */ jsx18(Key, { k, remove: () => remove(k) }, k.value)) }) : /* @__PURE__ */ jsx18("p", { class: "faint", children: t("noKeys") }),
    /* @__PURE__ */ jsxs18("form", { ref: form, class: "fields", onSubmit: add, children: [
      error.value ? /* @__PURE__ */ jsx18(Problem, { of: error.value }) : null,
      /* @__PURE__ */ jsxs18("label", { children: [
        /* @__PURE__ */ jsx18("span", { children: t("publicKey") }),
        /* @__PURE__ */ jsx18("textarea", { name: "value", class: "mono", required: true, rows: 3, spellcheck: false, autocomplete: "off", placeholder: "ssh-ed25519 AAAA… ann@laptop", onInput: () => wrong.value = "" })
      ] }),
      wrong.value ? /* @__PURE__ */ jsx18("p", { class: "bad", role: "alert", children: wrong.value }) : null,
      /* @__PURE__ */ jsxs18("label", { children: [
        /* @__PURE__ */ jsx18("span", { children: t("title") }),
        /* @__PURE__ */ jsx18("input", { name: "title", autocomplete: "off" })
      ] }),
      /* @__PURE__ */ jsx18("button", { type: "submit", disabled: busy.value, children: t("addKey") })
    ] })
  ] });
}
function Password2({ name }) {
  const form = useRef8(null);
  const wrong = useSignal14("");
  const { busy, error, send } = useSend();
  const submit = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const text2 = (field) => String(f.get(field) ?? "");
    wrong.value = text2("new") === text2("again") ? "" : t("passwordsDiffer");
    if (wrong.value) return;
    void send(async () => {
      await call("PUT /api/v3/users/{user}/password", { path: { user: name }, body: { oldPassword: text2("old"), password: text2("new") } });
      toSignIn();
    });
  };
  return /* @__PURE__ */ jsx18(Part, { title: t("password"), children: /* @__PURE__ */ jsxs18("form", { ref: form, class: "fields", onSubmit: submit, children: [
    error.value ? /* @__PURE__ */ jsx18(Problem, { of: error.value }) : null,
    /* @__PURE__ */ jsx18("input", { type: "text", name: "username", value: name, autocomplete: "username", hidden: true, readOnly: true }),
    /* @__PURE__ */ jsxs18("label", { children: [
      /* @__PURE__ */ jsx18("span", { children: t("oldPassword") }),
      /* @__PURE__ */ jsx18("input", { name: "old", type: "password", required: true, autocomplete: "current-password" })
    ] }),
    /* @__PURE__ */ jsxs18("label", { children: [
      /* @__PURE__ */ jsx18("span", { children: t("newPassword") }),
      /* @__PURE__ */ jsx18("input", { name: "new", type: "password", required: true, autocomplete: "new-password" })
    ] }),
    /* @__PURE__ */ jsxs18("label", { children: [
      /* @__PURE__ */ jsx18("span", { children: t("newPasswordAgain") }),
      /* @__PURE__ */ jsx18("input", { name: "again", type: "password", required: true, autocomplete: "new-password", onInput: () => wrong.value = "" })
    ] }),
    wrong.value ? /* @__PURE__ */ jsx18("p", { class: "bad", role: "alert", children: wrong.value }) : null,
    /* @__PURE__ */ jsx18("p", { class: "faint small", children: t("passwordEnds") }),
    /* @__PURE__ */ jsx18("button", { type: "submit", disabled: busy.value, children: t("changePassword") })
  ] }) });
}
var scopes = ["read", "submit", "admin", "secrets"];
var lives = ["30", "90", "365", "0"];
function Tokens2() {
  const { value, error, again } = useRead2("", (signal11) => call("GET /api/v3/tokens", { signal: signal11 }));
  const form = useRef8(null);
  const { busy, error: refused2, send } = useSend();
  const made = useSignal14(null);
  const all2 = value.value?.items ?? [];
  const create = (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    void send(async () => {
      const body = { label: String(f.get("label") ?? "").trim(), scopes: f.getAll("scopes").map(String), seconds: Number(f.get("days")) * 86400 };
      made.value = await call("POST /api/v3/tokens", { body });
      form.current?.reset();
      again();
    });
  };
  const revoke = (r) => ask2({
    title: t("ask.revoke", { name: r.label || maybe("kind." + r.kind, r.kind) }),
    text: t(r.id === me.value?.token.id ? "ask.revoke.own" : "ask.revoke.more"),
    yes: t("revoke"),
    danger: true,
    act: async () => {
      await call("DELETE /api/v3/tokens/{token}", { path: { token: r.id } });
      if (r.id === me.value?.token.id) toSignIn();
      toast(t("done.revoke"));
      again();
    }
  });
  return /* @__PURE__ */ jsxs18("section", { class: "panel wide", children: [
    /* @__PURE__ */ jsx18("h2", { children: t("tokens") }),
    /* @__PURE__ */ jsx18("p", { class: "faint", children: t("tokensHint") }),
    error.value ? /* @__PURE__ */ jsx18(Problem, { of: error.value, again }) : null,
    made.value ? /* @__PURE__ */ jsxs18("div", { class: "made", role: "status", children: [
      /* @__PURE__ */ jsx18("p", { children: t("tokenOnce", { name: made.value.record.label || made.value.record.id }) }),
      /* @__PURE__ */ jsxs18("div", { class: "secret", children: [
        /* @__PURE__ */ jsx18("code", { children: made.value.token }),
        /* @__PURE__ */ jsxs18("button", { type: "button", class: "primary", onClick: () => void copy(made.value.token), children: [
          /* @__PURE__ */ jsx18(Icon, { name: "copy" }),
          " ",
          t("copy")
        ] }),
        /* @__PURE__ */ jsx18("button", { type: "button", onClick: () => made.value = null, children: t("close") })
      ] })
    ] }) : null,
    value.value && all2.length === 0 ? /* @__PURE__ */ jsx18("p", { class: "faint", children: t("noTokens") }) : null,
    all2.length ? /* @__PURE__ */ jsx18("div", { class: "scrolls", children: /* @__PURE__ */ jsxs18("table", { class: "rows", children: [
      /* @__PURE__ */ jsx18("thead", { children: /* @__PURE__ */ jsxs18("tr", { children: [
        /* @__PURE__ */ jsx18("th", { children: t("label") }),
        /* @__PURE__ */ jsx18("th", { children: t("scopes") }),
        /* @__PURE__ */ jsx18("th", { children: t("createdAt") }),
        /* @__PURE__ */ jsx18("th", { children: t("lastUsed") }),
        /* @__PURE__ */ jsx18("th", { children: t("expires") }),
        /* @__PURE__ */ jsx18("th", { children: t("client") }),
        /* @__PURE__ */ jsx18("th", {})
      ] }) }),
      /* @__PURE__ */ jsx18("tbody", { children: all2.map((r) => /* @__PURE__ */ jsxs18("tr", { "data-token": r.id, children: [
        /* @__PURE__ */ jsxs18("td", { children: [
          r.label || /* @__PURE__ */ jsx18("span", { class: "faint", children: maybe("kind." + r.kind, r.kind) }),
          r.id === me.value?.token.id ? /* @__PURE__ */ jsx18("span", { class: "tag", children: t("thisSession") }) : null
        ] }),
        /* @__PURE__ */ jsx18("td", { children: r.scopes?.join(", ") }),
        /* @__PURE__ */ jsx18("td", { children: /* @__PURE__ */ jsx18(Ago, { time: r.created }) }),
        /* @__PURE__ */ jsx18("td", { children: r.used ? /* @__PURE__ */ jsx18(Ago, { time: r.used }) : /* @__PURE__ */ jsx18("span", { class: "faint", children: t("never") }) }),
        /* @__PURE__ */ jsx18("td", { children: r.expires ? /* @__PURE__ */ jsx18(Ago, { time: r.expires }) : /* @__PURE__ */ jsx18("span", { class: "faint", children: t("never") }) }),
        /* @__PURE__ */ jsxs18("td", { class: "client", title: r.client, children: [
          r.client,
          " ",
          /* @__PURE__ */ jsx18("span", { class: "faint", children: r.address })
        ] }),
        /* @__PURE__ */ jsx18("td", { class: "num", children: /* @__PURE__ */ jsx18("button", { type: "button", onClick: () => revoke(r), children: t("revoke") }) })
      ] }, r.id)) })
    ] }) }) : null,
    /* @__PURE__ */ jsxs18("form", { ref: form, class: "fields new-token", onSubmit: create, children: [
      /* @__PURE__ */ jsx18("h3", { children: t("newToken") }),
      refused2.value ? /* @__PURE__ */ jsx18(Problem, { of: refused2.value }) : null,
      /* @__PURE__ */ jsxs18("div", { class: "line", children: [
        /* @__PURE__ */ jsxs18("label", { children: [
          /* @__PURE__ */ jsx18("span", { children: t("label") }),
          /* @__PURE__ */ jsx18("input", { name: "label", required: true, maxLength: 200, autocomplete: "off" })
        ] }),
        /* @__PURE__ */ jsxs18("label", { children: [
          /* @__PURE__ */ jsx18("span", { children: t("validFor") }),
          /* @__PURE__ */ jsx18("select", { name: "days", children: lives.map((x) => /* @__PURE__ */ jsx18("option", { value: x, selected: x === "90", children: x === "0" ? t("untilRevoked") : t("lastDays", { n: x }) }, x)) })
        ] }),
        /* @__PURE__ */ jsxs18("fieldset", { children: [
          /* @__PURE__ */ jsx18("legend", { children: t("scopes") }),
          /* @__PURE__ */ jsx18("div", { class: "choices", children: scopes.map(
            (x) => x === "admin" && !me.value?.grants.administrator ? null : /* @__PURE__ */ jsxs18("label", { class: "tick", title: t(`scope.${x}`), children: [
              /* @__PURE__ */ jsx18("input", { type: "checkbox", name: "scopes", value: x, defaultChecked: x === "read" || x === "submit" }),
              " ",
              x
            ] }, x)
          ) })
        ] }),
        /* @__PURE__ */ jsx18("button", { type: "submit", disabled: busy.value, children: t("createToken") })
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/submit.tsx
import { signal as signal10, useSignal as useSignal16 } from "./library.js";
import { useEffect as useEffect21, useRef as useRef11 } from "./library.js";

// pkg/portal/web/src/form.tsx
import { useRef as useRef9 } from "./library.js";

// pkg/portal/web/src/parameters.ts
function quotedText(text2, at) {
  const found = text2[at] === '"' ? /"(?:[^"\\\r\n]|\\[^\r\n])*"/y : /'(?:[^'\r\n]|'')*'/y;
  found.lastIndex = at;
  const raw = found.exec(text2)?.[0];
  if (raw === void 0) return null;
  if (raw[0] === "'") return { value: raw.slice(1, -1).replaceAll("''", "'"), end: at + raw.length, quote: "'" };
  try {
    return { value: JSON.parse(raw.replaceAll("	", "\\t")), end: at + raw.length, quote: '"' };
  } catch {
    return null;
  }
}
function plainText(text2, at, flow) {
  const found = flow ? /[^\r\n,[\]{}#]*/y : /[^\r\n]*/y;
  found.lastIndex = at;
  const value = found.exec(text2)[0].replace(/(^|\s)#.*$/, "").trimEnd();
  if (/^[&*!|>{[%@`"'#,\]}]|^[-?:](\s|$)|:(\s|$)/.test(value)) return null;
  return { value, end: at + value.length, quote: "" };
}
function scalar(text2, at, flow) {
  return text2[at] === '"' || text2[at] === "'" ? quotedText(text2, at) : plainText(text2, at, flow);
}
function key(text2, at) {
  const quoted2 = text2[at] === '"' || text2[at] === "'" ? quotedText(text2, at) : null;
  const found = quoted2 ? /()[ \t]*:(?=[ \t\r\n]|$)/y : /([\p{L}\p{N}_$][^\r\n:,[\]{}#"']*?)[ \t]*:(?=[ \t\r\n]|$)/uy;
  found.lastIndex = quoted2?.end ?? at;
  const m = found.exec(text2);
  return m ? { value: quoted2?.value ?? m[1], end: found.lastIndex, quote: "" } : null;
}
function entry(text2, at, flow) {
  const name = key(text2, at);
  if (!name) return null;
  let from = name.end;
  while (text2[from] === " " || text2[from] === "	") from++;
  const value = scalar(text2, from, flow);
  if (value?.value === "" && !value.quote) return { name: name.value, value: "", from: name.end, to: name.end, quote: "", flow };
  if (value) return { name: name.value, value: value.value, from, to: value.end, quote: value.quote, flow };
  return /[|>{[&*!"']/.test(text2[from] ?? "") ? { name: name.value, value: "", from, to: -1, quote: "", flow } : null;
}
function ends(text2, at) {
  const rest = /[ \t]*(?:[ \t]#[^\r\n]*)?\r?(?=\n|$)/y;
  rest.lastIndex = at;
  return rest.test(text2);
}
function parameters(text2) {
  const heads = [...text2.matchAll(/^(?:parameters|"parameters"|'parameters')[ \t]*:(?=[ \t\r\n]|$)/gm)];
  const [head] = heads;
  if (!head || heads.length > 1 || /\n---(?:\s|$)/.test(text2.replace(/^(?:[ \t]*(?:#.*)?\r?\n)*---/, ""))) return [];
  const at = head.index + head[0].length;
  const brace = /[ \t]+\{/y;
  brace.lastIndex = at;
  const out = brace.test(text2) ? braces(text2, brace.lastIndex) : ends(text2, at) ? lines2(text2, at) : null;
  if (!out || new Set(out.map((p) => p.name)).size !== out.length) return [];
  return out.filter((p) => p.to >= 0);
}
function braces(text2, at) {
  const out = [];
  const skip = () => {
    while (text2[at] === " " || text2[at] === "	") at++;
  };
  for (; ; ) {
    skip();
    if (text2[at] === "}") return ends(text2, at + 1) ? out : null;
    const p = entry(text2, at, true);
    if (!p || p.to < 0) return null;
    out.push(p);
    at = p.to;
    skip();
    if (text2[at] === ",") at++;
    else if (text2[at] !== "}") return null;
  }
}
function lines2(text2, at) {
  const out = [];
  let indent = -1;
  for (at = text2.indexOf("\n", at) + 1; at > 0 && at < text2.length; at = text2.indexOf("\n", at) + 1) {
    const [, spaces, rest] = /^( *)([^\r\n]*)/.exec(text2.slice(at, (text2.indexOf("\n", at) + 1 || text2.length + 1) - 1));
    if (/^\s*(#|$)/.test(rest)) continue;
    if (spaces === "") return /^[-\t]/.test(rest) ? null : out;
    if (indent < 0) indent = spaces.length;
    const last = out.at(-1);
    if (spaces.length > indent && last) {
      last.to = -1;
      continue;
    }
    const p = spaces.length === indent ? entry(text2, at + indent, false) : null;
    if (!p || p.to >= 0 && !ends(text2, p.to)) return null;
    out.push(p);
  }
  return out;
}
function kind(text2) {
  if (/^[-+.]?\.?\d|^[-+]?\.(inf|nan)$/i.test(text2)) return "number";
  return /^(true|false|yes|no|on|off|y|n|null|~|)$/i.test(text2) ? "word" : "text";
}
function written(p, value) {
  const odd = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufeff]/.test(value);
  const single = () => "'" + value.replaceAll("'", "''") + "'";
  if (odd || p.quote === '"') return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  if (p.quote === "'" || value !== value.trim() || kind(value) !== "text" && kind(value) !== kind(p.value) && (p.value !== "" || value === "")) return single();
  const back = plainText(value, 0, p.flow);
  return back && back.value === value ? value : single();
}
function changed(text2, name, value, like) {
  const p = parameters(text2).find((x) => x.name === name);
  if (!p || p.value === value) return text2;
  const space = text2[p.from - 1] === ":" ? " " : "";
  return text2.slice(0, p.from) + space + written({ ...like ?? p, flow: p.flow }, value) + text2.slice(p.to);
}
function filled(text2, query) {
  for (const [key2, value] of query) if (key2.startsWith("set.")) text2 = changed(text2, key2.slice(4), value);
  return text2;
}

// pkg/portal/web/src/form.tsx
import { jsx as jsx19, jsxs as jsxs19 } from "./library.js";
function Parameters({ text: text2, change, done: done2 }) {
  const all2 = parameters(text2);
  const like = useRef9(null);
  if (all2.length === 0) return null;
  return /* @__PURE__ */ jsxs19("form", { class: "parameters", "aria-label": t("parameters"), onSubmit: (e) => e.preventDefault(), onChange: done2, children: [
    /* @__PURE__ */ jsx19("h2", { children: t("parameters") }),
    all2.map((p) => /* @__PURE__ */ jsxs19("label", { children: [
      /* @__PURE__ */ jsx19("span", { children: p.name }),
      /* @__PURE__ */ jsx19(
        "input",
        {
          type: "text",
          name: p.name,
          value: p.value,
          spellcheck: false,
          autocomplete: "off",
          autocapitalize: "off",
          onFocus: () => like.current = p,
          onInput: (e) => change(p.name, e.currentTarget.value, like.current?.name === p.name ? like.current : p)
        }
      )
    ] }, p.name))
  ] });
}

// pkg/portal/web/src/editor.tsx
import { useSignal as useSignal15 } from "./library.js";
import { useEffect as useEffect20, useRef as useRef10 } from "./library.js";
import { Fragment as Fragment17, jsx as jsx20, jsxs as jsxs20 } from "./library.js";
function JobFile(field) {
  const way = useSignal15("loading");
  const box = useRef10(null);
  const editor = useRef10(null);
  const latest = useRef10(field);
  latest.current = field;
  const speaks = language.value;
  useEffect20(() => {
    let gone = false;
    load("editor").then(
      (m) => {
        if (gone) return;
        editor.current = m.edit(box.current, latest.current.now(), {
          label: t("jobFile"),
          help: t("editorHelp"),
          phrases: speaks === "en" ? {} : phrases(),
          virtualClusters: ownVCs,
          changed: (text2) => latest.current.changed(text2),
          send: () => latest.current.send()
        });
        field.show.current = editor.current.show;
        editor.current.mark(placed(latest.current.findings ?? []));
        way.value = "editor";
      },
      () => way.value = "plain"
    );
    return () => {
      gone = true;
      editor.current?.end();
      editor.current = null;
    };
  }, [speaks]);
  useEffect20(() => editor.current?.set(field.now()), [field.text]);
  useEffect20(() => {
    if (field.findings) editor.current?.mark(placed(field.findings));
  }, [field.findings]);
  return /* @__PURE__ */ jsxs20(Fragment17, { children: [
    /* @__PURE__ */ jsx20("div", { ref: box, class: "rich", hidden: way.value !== "editor" }),
    way.value === "loading" ? /* @__PURE__ */ jsx20(Loading, {}) : null,
    way.value === "plain" ? /* @__PURE__ */ jsx20(Plain, { ...field }) : null,
    way.value === "editor" ? /* @__PURE__ */ jsx20("p", { class: "keys-hint faint", children: t("editorHelp") }) : null
  ] });
}
function placed(findings) {
  return findings.filter((f) => f.line);
}
function Plain({ text: text2, findings, changed: changed2, send, show }) {
  const area = useRef10(null);
  const gutter = useRef10(null);
  show.current = (line) => {
    const a = area.current;
    const lines3 = a.value.split("\n");
    const from = lines3.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    a.focus();
    a.setSelectionRange(from, from + (lines3[line - 1]?.length ?? 0));
    a.scrollTop = Math.max(0, (line - 6) * (a.scrollHeight / lines3.length));
  };
  const keys2 = (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
      e.preventDefault();
      send();
    } else if (e.key === "Enter" && !e.shiftKey) {
      const a = e.currentTarget;
      const line = a.value.slice(a.value.lastIndexOf("\n", a.selectionStart - 1) + 1, a.selectionStart);
      const indent = /^ */.exec(line)[0] + (line.trimEnd().endsWith(":") ? "  " : "");
      if (!indent) return;
      e.preventDefault();
      document.execCommand("insertText", false, "\n" + indent);
    }
  };
  const worst = /* @__PURE__ */ new Map();
  for (const f of findings ?? []) if (f.line) worst.set(f.line, f.severity === "warning" && worst.get(f.line) !== "bad" ? "warn" : "bad");
  return /* @__PURE__ */ jsxs20(Fragment17, { children: [
    /* @__PURE__ */ jsx20("pre", { ref: gutter, class: "gutter", "aria-hidden": "true", children: Array.from({ length: text2.split("\n").length }, (_, i) => /* @__PURE__ */ jsxs20("i", { class: worst.get(i + 1) ?? "", children: [
      i + 1,
      "\n"
    ] }, i)) }),
    /* @__PURE__ */ jsx20(
      "textarea",
      {
        ref: area,
        "aria-label": t("jobFile"),
        spellcheck: false,
        autocomplete: "off",
        autocapitalize: "off",
        wrap: "off",
        value: text2,
        onInput: (e) => changed2(e.currentTarget.value),
        onKeyDown: keys2,
        onScroll: (e) => gutter.current.scrollTop = e.currentTarget.scrollTop
      }
    ),
    /* @__PURE__ */ jsx20("p", { class: "keys-hint faint", children: t("plainEditor") })
  ] });
}
function phrases() {
  return {
    Find: t("find"),
    Replace: t("edit.replace"),
    next: t("next"),
    previous: t("before"),
    all: t("edit.all"),
    "match case": t("edit.case"),
    regexp: t("edit.regexp"),
    "by word": t("edit.word"),
    replace: t("edit.replace"),
    "replace all": t("edit.replaceAll"),
    close: t("close"),
    "Go to line": t("edit.line"),
    go: t("edit.go"),
    Completions: t("edit.completions"),
    Diagnostics: t("check"),
    "No diagnostics": t("edit.noFindings"),
    "Control character": t("edit.control"),
    "folded code": t("edit.folded"),
    "Fold line": t("edit.fold"),
    "Unfold line": t("edit.unfold"),
    unfold: t("edit.unfold")
  };
}

// pkg/portal/web/src/template.ts
var official = "official example";
function isOfficial(x) {
  return x.categories?.includes(official) ?? false;
}
function mayChange(x) {
  return me.value?.grants.administrator === true || x.author === me.value?.name && !isOfficial(x);
}
function specOf2(x) {
  const { author, categories: categories2, dataType, dataUrl, description, groups, job, name, public: open, summary, tags, type } = x;
  return { author, categories: categories2, dataType, dataUrl, description, groups, job, name, public: open, summary, tags, type };
}
function nameIn(file) {
  return /^name:[ \t]*(["']?)([^"'\s#]+)\1[ \t]*(?:#.*)?\r?$/m.exec(file)?.[2] ?? "";
}
function renamed(file, name) {
  return /^name:.*$/m.test(file) ? file.replace(/^name:.*$/m, (line) => "name: " + name + (line.endsWith("\r") ? "\r" : "")) : file;
}
async function fileOf(id, query, signal11) {
  const { job } = await call("GET /api/v3/templates/{template}", { path: { template: id }, signal: signal11 });
  const file = filled(job, query);
  const name = nameIn(file);
  if (!name) return file;
  try {
    const free = await call("GET /api/v3/jobs/{user}/{name}/freename", { path: { user: me.value.name, name }, signal: signal11 });
    return renamed(file, free.name);
  } catch (e) {
    if (e instanceof Failure && e.status < 500) return file;
    throw e;
  }
}

// pkg/portal/web/src/submit.tsx
import { Fragment as Fragment18, jsx as jsx21, jsxs as jsxs21 } from "./library.js";
var text = signal10("");
var cloned = signal10("");
var none = [];
var pause2 = 500;
function example() {
  const vc = ownVCs()[0];
  return `protocolVersion: 2
name: hello-${Math.random().toString(36).slice(2, 8)}
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: python:3.12
taskRoles:
  worker:
    instances: 1
    dockerImage: image
    resourcePerInstance:
      cpu: 1
      memoryMB: 1024
      gpu: 1
    commands:
      - nvidia-smi
      - echo "Hello from $PAI_TASK_INDEX"
${vc ? `defaults:
  virtualCluster: ${vc}
` : ""}`;
}
function Finding({ f, show }) {
  return /* @__PURE__ */ jsxs21("li", { class: f.severity === "warning" ? "warn" : "bad", children: [
    f.line ? /* @__PURE__ */ jsx21("button", { type: "button", class: "link", onClick: () => show(f.line, f.column), children: t("line", { n: f.line }) }) : null,
    " ",
    f.message,
    f.remedy ? /* @__PURE__ */ jsxs21("span", { class: "faint", children: [
      " ",
      f.remedy
    ] }) : null
  ] });
}
function Submit() {
  const of = place.value.query.get("clone") ?? "";
  const template = place.value.query.get("template") ?? "";
  const show = useRef11(() => {
  });
  const file = useRef11(null);
  const checked = useSignal16(null);
  const refused2 = useSignal16(null);
  const error = useSignal16(null);
  const checking = useSignal16(false);
  const sending = useSignal16(false);
  const loading = useSignal16(false);
  const key2 = useRef11({ text: "", key: "" });
  useEffect21(() => {
    document.title = t("submit") + " – paictl";
    const leaves = (e) => {
      if (text.value && text.value !== cloned.value) e.preventDefault();
    };
    addEventListener("beforeunload", leaves);
    return () => removeEventListener("beforeunload", leaves);
  }, []);
  useEffect21(() => {
    if (!template) return;
    const stop = new AbortController();
    loading.value = true;
    fileOf(template, place.value.query, stop.signal).then((file2) => cloned.value = text.value = file2).catch((e) => {
      if (!stop.signal.aborted) error.value = failure(e);
    }).finally(() => loading.value = false);
    return () => stop.abort();
  }, [template]);
  useEffect21(() => {
    if (!of) return;
    const stop = new AbortController();
    const [user, name] = of.split("/");
    const path = { user: user ?? "", name: name ?? "" };
    loading.value = true;
    Promise.all([call("GET /api/v3/jobs/{user}/{name}/brief", { path, signal: stop.signal }), call("GET /api/v3/jobs/{user}/{name}/freename", { path, signal: stop.signal })]).then(([job, free]) => {
      cloned.value = text.value = renamed(job.config ?? "", free.name);
    }).catch((e) => {
      if (!stop.signal.aborted) error.value = failure(e);
    }).finally(() => loading.value = false);
    return () => stop.abort();
  }, [of]);
  useEffect21(() => {
    checked.value = null;
    refused2.value = null;
    if (!text.value.trim()) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      checking.value = true;
      try {
        checked.value = await call("POST /api/v3/jobs", { query: { check: true }, body: { text: text.value, file: "job.yaml" }, signal: stop.signal });
      } catch (e) {
        if (!stop.signal.aborted) refused2.value = failure(e);
      } finally {
        if (!stop.signal.aborted) checking.value = false;
      }
    }, pause2);
    return () => {
      clearTimeout(timer);
      stop.abort();
      checking.value = false;
    };
  }, [text.value]);
  const send = async () => {
    if (sending.value || !text.value.trim()) return;
    sending.value = true;
    error.value = null;
    if (key2.current.text !== text.value) key2.current = { text: text.value, key: crypto.randomUUID() };
    try {
      const out = await call("POST /api/v3/jobs", { body: { text: text.value, file: "job.yaml" }, key: key2.current.key });
      if (template) call("POST /api/v3/templates/{template}/use", { path: { template } }).catch(() => {
      });
      text.value = cloned.value = "";
      go(address(["jobs", out.user, out.name]));
    } catch (e) {
      error.value = failure(e);
    } finally {
      sending.value = false;
    }
  };
  const open = async (f) => {
    if (f) text.value = await f.text();
  };
  const result = refused2.value ?? checked.value;
  const findings = result?.findings ?? none;
  return /* @__PURE__ */ jsxs21("section", { class: "page submit", children: [
    /* @__PURE__ */ jsxs21("header", { class: "top", children: [
      /* @__PURE__ */ jsx21("h1", { children: of ? t("cloneOf", { job: of }) : t("newJob") }),
      /* @__PURE__ */ jsx21("span", { class: "grow" }),
      /* @__PURE__ */ jsx21(
        "input",
        {
          ref: file,
          type: "file",
          accept: ".yaml,.yml,.json,text/yaml",
          hidden: true,
          onChange: (e) => {
            void open(e.currentTarget.files?.[0]);
            e.currentTarget.value = "";
          }
        }
      ),
      /* @__PURE__ */ jsx21(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("saveTemplate"), icon: "file", run: () => go(address(["templates", "new"], { from: "submit" })) },
            { label: t("copyPaictl"), icon: "copy", run: () => void copy("paictl job submit job.yaml") }
          ]
        }
      ),
      /* @__PURE__ */ jsxs21("button", { type: "button", onClick: () => file.current.click(), children: [
        /* @__PURE__ */ jsx21(Icon, { name: "file" }),
        " ",
        t("openFile")
      ] }),
      /* @__PURE__ */ jsx21("button", { type: "button", class: "primary", disabled: sending.value || checking.value || !text.value.trim() || refused2.value !== null, title: "Ctrl Enter", onClick: () => void send(), children: t(sending.value ? "submitting" : "submitJob") })
    ] }),
    error.value ? /* @__PURE__ */ jsx21(Problem, { of: error.value }) : null,
    text.value.includes("******") ? /* @__PURE__ */ jsx21("p", { class: "note", children: t("enterSecrets") }) : null,
    /* @__PURE__ */ jsxs21("div", { class: "editor-and-check", children: [
      /* @__PURE__ */ jsxs21(
        "div",
        {
          class: "editor",
          onDragOver: (e) => e.preventDefault(),
          onDropCapture: (e) => {
            if (!e.dataTransfer?.files.length) return;
            e.preventDefault();
            e.stopPropagation();
            void open(e.dataTransfer.files[0]);
          },
          children: [
            /* @__PURE__ */ jsx21(JobFile, { text: text.value, now: () => text.peek(), findings: result || !text.value.trim() ? findings : null, changed: (now2) => text.value = now2, send: () => void send(), show }),
            text.value === "" && !loading.value ? /* @__PURE__ */ jsxs21("div", { class: "nothing", children: [
              /* @__PURE__ */ jsx21("p", { children: t("emptyFile") }),
              /* @__PURE__ */ jsx21("button", { type: "button", onClick: () => text.value = example(), children: t("example") })
            ] }) : null
          ]
        }
      ),
      /* @__PURE__ */ jsxs21("aside", { children: [
        /* @__PURE__ */ jsx21(Parameters, { text: text.value, change: (name, value, like) => text.value = changed(text.value, name, value, like) }),
        /* @__PURE__ */ jsx21("h2", { children: t("check") }),
        /* @__PURE__ */ jsxs21("div", { class: "verdict", role: "status", "aria-live": "polite", children: [
          loading.value ? /* @__PURE__ */ jsx21(Loading, {}) : null,
          checking.value ? /* @__PURE__ */ jsx21("p", { class: "faint", children: t("checking") }) : null,
          refused2.value && !checking.value ? findings.length ? /* @__PURE__ */ jsxs21(Fragment18, { children: [
            /* @__PURE__ */ jsxs21("p", { class: "bad", children: [
              /* @__PURE__ */ jsx21(Icon, { name: "warn" }),
              " ",
              t("refused")
            ] }),
            /* @__PURE__ */ jsx21("ul", { class: "findings", children: findings.map((f, i) => /* @__PURE__ */ jsx21(Finding, { f, show: (line, column) => show.current(line, column) }, i)) })
          ] }) : /* @__PURE__ */ jsx21(Problem, { of: refused2.value }) : null,
          checked.value && !checking.value ? /* @__PURE__ */ jsxs21(Fragment18, { children: [
            /* @__PURE__ */ jsxs21("p", { class: "good", children: [
              /* @__PURE__ */ jsx21(Icon, { name: "check" }),
              " ",
              t(findings.length ? "warnings" : "fine")
            ] }),
            findings.length ? /* @__PURE__ */ jsx21("ul", { class: "findings", children: findings.map((f, i) => /* @__PURE__ */ jsx21(Finding, { f, show: (line, column) => show.current(line, column) }, i)) }) : null,
            /* @__PURE__ */ jsxs21("p", { children: [
              /* @__PURE__ */ jsx21("b", { children: checked.value.name }),
              /* @__PURE__ */ jsx21("br", {}),
              t("willRequest", { tasks: checked.value.tasks, gpus: checked.value.gpus, vc: checked.value.virtualCluster })
            ] })
          ] }) : null,
          !text.value.trim() && !loading.value ? /* @__PURE__ */ jsx21("p", { class: "faint", children: t("emptyFile") }) : null
        ] }),
        /* @__PURE__ */ jsx21("h2", { children: t("yourVCs") }),
        /* @__PURE__ */ jsx21(VCs, {})
      ] })
    ] })
  ] });
}

// pkg/portal/web/src/templates.tsx
import { useSignal as useSignal17 } from "./library.js";
import { useEffect as useEffect22, useRef as useRef12 } from "./library.js";
import { Fragment as Fragment19, jsx as jsx22, jsxs as jsxs22 } from "./library.js";
var views = ["all", "mine", "shared", "official", "starred"];
var orders = ["stars", "uses", "updated", "name"];
function fits(x, view, label) {
  if (label && !x.tags?.includes(label) && !x.categories?.includes(label)) return false;
  switch (view) {
    case "mine":
      return x.author === me.value?.name;
    case "shared":
      return x.author !== me.value?.name;
    case "official":
      return isOfficial(x);
    case "starred":
      return x.starred;
  }
  return true;
}
function compare(order) {
  return (a, b) => {
    const by = order === "name" ? 0 : order === "updated" ? Date.parse(b.updated) - Date.parse(a.updated) : b[order] - a[order] || b.stars - a.stars;
    return by || a.name.localeCompare(b.name) || a.author.localeCompare(b.author);
  };
}
function Star({ x, changed: changed2 }) {
  const busy = useSignal17(false);
  const press = async () => {
    busy.value = true;
    try {
      changed2(await call(x.starred ? "DELETE /api/v3/templates/{template}/star" : "PUT /api/v3/templates/{template}/star", { path: { template: x.id } }));
    } catch (e) {
      toast(failure(e).message);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsxs22("button", { type: "button", class: "star", "aria-pressed": x.starred, "aria-label": t("star"), title: t(x.starred ? "unstar" : "star"), disabled: busy.value, onClick: () => void press(), children: [
    /* @__PURE__ */ jsx22("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", children: /* @__PURE__ */ jsx22("path", { d: "M8 2l1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z" }) }),
    x.stars
  ] });
}
function Labels({ x }) {
  const all2 = [...(x.categories ?? []).filter((c) => c !== official), ...x.tags ?? []];
  return /* @__PURE__ */ jsxs22(Fragment19, { children: [
    isOfficial(x) ? /* @__PURE__ */ jsx22("a", { class: "tag official", href: address(["templates"], { view: "official" }), children: t("official") }) : null,
    all2.map((label) => /* @__PURE__ */ jsx22("a", { class: "tag", href: address(["templates"], { label }), children: label }, label))
  ] });
}
function sharedWith(x) {
  if (x.public) return t("everyone");
  return x.groups?.length ? x.groups.join(", ") : t("onlyAuthor");
}
function Card({ x, chosen: chosen2, changed: changed2 }) {
  const card = useRef12(null);
  useEffect22(() => {
    if (chosen2) card.current?.scrollIntoView({ block: "nearest" });
  }, [chosen2]);
  return /* @__PURE__ */ jsxs22("article", { ref: card, class: chosen2 ? "template chosen" : "template", children: [
    /* @__PURE__ */ jsxs22("header", { children: [
      /* @__PURE__ */ jsx22("a", { class: "whole", href: address(["templates", x.id]), children: x.name }),
      /* @__PURE__ */ jsx22(Star, { x, changed: changed2 })
    ] }),
    /* @__PURE__ */ jsx22("p", { class: "summary", children: x.summary || /* @__PURE__ */ jsx22("span", { class: "faint", children: t("noSummary") }) }),
    /* @__PURE__ */ jsx22("p", { class: "labels", children: /* @__PURE__ */ jsx22(Labels, { x }) }),
    /* @__PURE__ */ jsxs22("footer", { class: "faint small", children: [
      /* @__PURE__ */ jsx22("span", { children: x.author }),
      /* @__PURE__ */ jsx22("span", { children: t("usedTimes", { n: x.uses }) }),
      /* @__PURE__ */ jsx22(Ago, { time: x.updated }),
      /* @__PURE__ */ jsx22("span", { title: t("sharedWith"), children: sharedWith(x) })
    ] })
  ] });
}
function Templates() {
  const q = place.value.query;
  const keyword = q.get("keyword") ?? "";
  const view = views.find((x) => x === q.get("view")) ?? "all";
  const order = orders.find((x) => x === q.get("order")) ?? "stars";
  const label = q.get("label") ?? "";
  const mine = view === "mine" ? me.value.name : "";
  const search = useRef12(null);
  const at = useSignal17(-1);
  const { value, error, again } = useRead2(keyword + "\n" + mine, (signal11) => call("GET /api/v3/templates", { query: { keyword, author: mine }, signal: signal11 }));
  useEffect22(() => {
    document.title = t("templates") + " – paictl";
  }, []);
  useEffect22(() => {
    at.value = -1;
    if (document.activeElement !== search.current) search.current.value = keyword;
  }, [q.toString()]);
  const timer = useRef12(0);
  const typed = (word) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setQuery({ keyword: word || void 0 }), 250);
  };
  useEffect22(() => () => clearTimeout(timer.current), []);
  const all2 = value.value?.items ?? [];
  const rows = all2.filter((x) => fits(x, view, label)).sort(compare(order));
  const labels = [.../* @__PURE__ */ new Set([...all2.flatMap((x) => [...x.categories ?? [], ...x.tags ?? []]), ...label ? [label] : []])].filter((x) => x !== official).sort();
  const filtered = keyword !== "" || view !== "all" || label !== "";
  const move = (by) => at.value = Math.max(0, Math.min(rows.length - 1, at.value + by));
  useKeys({
    "/": () => search.current?.focus(),
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => {
      const x = rows[at.value];
      if (x) go(address(["templates", x.id]));
    }
  });
  const replaced = (next) => value.value = { items: all2.map((x) => x.id === next.id ? next : x) };
  const command2 = ["paictl job template list"];
  if (mine) command2.push("--mine");
  if (keyword) command2.push("--keyword " + quoted(keyword));
  return /* @__PURE__ */ jsxs22("section", { class: "page", children: [
    /* @__PURE__ */ jsxs22("header", { class: "top", children: [
      /* @__PURE__ */ jsx22("h1", { children: t("templates") }),
      /* @__PURE__ */ jsx22("span", { class: "grow" }),
      /* @__PURE__ */ jsx22(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/templates", { query: { keyword, author: mine } })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs22("a", { class: "button primary", href: address(["templates", "new"]), children: [
        /* @__PURE__ */ jsx22(Icon, { name: "plus" }),
        " ",
        t("newTemplate")
      ] })
    ] }),
    /* @__PURE__ */ jsxs22("div", { class: "filters", children: [
      /* @__PURE__ */ jsxs22("label", { class: "search", children: [
        /* @__PURE__ */ jsx22(Icon, { name: "search" }),
        /* @__PURE__ */ jsx22("input", { ref: search, type: "search", placeholder: t("searchTemplates"), "aria-label": t("searchTemplates"), defaultValue: keyword, onInput: (e) => typed(e.currentTarget.value), onKeyDown: (e) => e.key === "Escape" && e.currentTarget.blur() }),
        /* @__PURE__ */ jsx22("kbd", { children: "/" })
      ] }),
      /* @__PURE__ */ jsx22("div", { class: "segments", role: "group", "aria-label": t("templates"), children: views.map((name) => /* @__PURE__ */ jsx22("button", { type: "button", "aria-pressed": view === name, onClick: () => setQuery({ view: name === "all" ? void 0 : name }), children: t(`view.${name}`) }, name)) }),
      labels.length > 0 ? /* @__PURE__ */ jsxs22("select", { "aria-label": t("labels"), value: label, onChange: (e) => setQuery({ label: e.currentTarget.value || void 0 }), children: [
        /* @__PURE__ */ jsx22("option", { value: "", children: t("anyLabel") }),
        labels.map((x) => /* @__PURE__ */ jsx22("option", { value: x, children: x }, x))
      ] }) : null,
      /* @__PURE__ */ jsx22("select", { "aria-label": t("order"), value: order, onChange: (e) => setQuery({ order: e.currentTarget.value === "stars" ? void 0 : e.currentTarget.value }), children: orders.map((x) => /* @__PURE__ */ jsx22("option", { value: x, children: t(`order.${x}`) }, x)) })
    ] }),
    error.value ? /* @__PURE__ */ jsx22(Problem, { of: error.value, again }) : null,
    !value.value ? error.value ? null : /* @__PURE__ */ jsx22(Loading, {}) : rows.length === 0 ? /* @__PURE__ */ jsxs22("div", { class: "empty", children: [
      /* @__PURE__ */ jsx22("p", { children: t(filtered ? "noTemplateMatch" : "noTemplates") }),
      filtered ? /* @__PURE__ */ jsx22("button", { type: "button", onClick: () => go(address(["templates"])), children: t("clearFilters") }) : /* @__PURE__ */ jsx22("p", { class: "faint", children: t("noTemplatesHint") })
    ] }) : /* @__PURE__ */ jsx22("div", { class: "templates", children: rows.map((x, i) => /* @__PURE__ */ jsx22(Card, { x, chosen: i === at.value, changed: replaced }, x.id)) })
  ] });
}
function TemplatePage({ id }) {
  const { value, error, again } = useRead2(id, (signal11) => call("GET /api/v3/templates/{template}", { path: { template: id }, signal: signal11 }));
  const x = value.value;
  useEffect22(() => {
    document.title = (x?.name ?? t("templates")) + " – paictl";
  }, [x?.name]);
  if (!x) return error.value ? /* @__PURE__ */ jsx22(Problem, { of: error.value, again }) : /* @__PURE__ */ jsx22(Loading, {});
  if (place.value.query.get("edit")) {
    return /* @__PURE__ */ jsx22(Edit, { title: t("editTemplate", { name: x.name }), spec: specOf2(x), store: (spec) => call("PUT /api/v3/templates/{template}", { path: { template: id }, body: { spec, version: x.version } }), done: (next) => {
      value.value = next;
      go(address(["templates", id]));
    }, cancel: address(["templates", id]) });
  }
  return /* @__PURE__ */ jsx22(Shown, { x, changed: (next) => value.value = next });
}
function Shown({ x, changed: took }) {
  const path = { template: x.id };
  const full = x.author === me.value?.name ? x.name : `${x.author}/${x.name}`;
  const values = useSignal17(Object.fromEntries([...place.value.query].filter(([key2]) => key2.startsWith("set."))));
  const file = filled(x.job, new URLSearchParams(values.value));
  const masked = x.job.includes("******");
  const change = (name, value) => {
    const had = parameters(x.job).find((p) => p.name === name);
    values.value = { ...values.value, ["set." + name]: had?.value === value ? void 0 : value };
  };
  const given = () => Object.entries(values.value).filter(([, v]) => v !== void 0);
  const submit = masked ? `paictl job template show ${quoted(full)} --config > job.yaml` : [`paictl job submit --template ${quoted(full)}`, ...given().map(([k, v]) => "--set " + quoted(k.slice(4) + "=" + v))].join(" ");
  const remove = () => ask2({
    title: t("ask.removeTemplate", { name: x.name }),
    text: t("ask.removeTemplate.more"),
    yes: t("remove"),
    danger: true,
    act: async () => {
      await call("DELETE /api/v3/templates/{template}", { path });
      toast(t("done.removeTemplate"));
      go(address(["templates"]));
    }
  });
  return /* @__PURE__ */ jsxs22("section", { class: "page template-page", children: [
    /* @__PURE__ */ jsxs22("header", { class: "top", children: [
      /* @__PURE__ */ jsxs22("nav", { class: "crumbs", children: [
        /* @__PURE__ */ jsx22("a", { href: address(["templates"]), children: t("templates") }),
        /* @__PURE__ */ jsx22(Icon, { name: "chevron" })
      ] }),
      /* @__PURE__ */ jsx22("h1", { title: x.name, children: x.name }),
      /* @__PURE__ */ jsx22("span", { class: "grow" }),
      /* @__PURE__ */ jsxs22("div", { class: "actions", children: [
        /* @__PURE__ */ jsx22(Star, { x, changed: took }),
        /* @__PURE__ */ jsxs22("a", { class: "button primary", href: address(["submit"], { template: x.id, ...Object.fromEntries(given()) }), children: [
          /* @__PURE__ */ jsx22(Icon, { name: "plus" }),
          " ",
          t("use")
        ] }),
        /* @__PURE__ */ jsx22(
          Menu,
          {
            label: t("more"),
            icon: "more",
            items: [
              { label: t("copyPaictl"), icon: "copy", run: () => void copy(`paictl job template show ${quoted(full)}`) },
              { label: t("copySubmit"), icon: "copy", run: () => void copy(submit) },
              { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/templates/{template}", { path })) },
              { label: t("copyLink"), icon: "link", run: () => void copy(location.href) },
              ...mayChange(x) ? [null, { label: t("edit"), icon: "file", run: () => go(address(["templates", x.id], { edit: "yes" })) }, { label: t("remove"), icon: "trash", danger: true, run: remove }] : []
            ]
          }
        )
      ] })
    ] }),
    x.summary ? /* @__PURE__ */ jsx22("p", { class: "lead", children: x.summary }) : null,
    /* @__PURE__ */ jsxs22("dl", { class: "facts", children: [
      /* @__PURE__ */ jsx22(Fact2, { name: "author", children: x.author }),
      /* @__PURE__ */ jsx22(Fact2, { name: "sharedWith", children: sharedWith(x) }),
      /* @__PURE__ */ jsx22(Fact2, { name: "uses", children: x.uses }),
      /* @__PURE__ */ jsx22(Fact2, { name: "version", children: x.version }),
      /* @__PURE__ */ jsx22(Fact2, { name: "changedAt", children: /* @__PURE__ */ jsx22(Ago, { time: x.updated }) }),
      /* @__PURE__ */ jsx22(Fact2, { name: "createdAt", children: /* @__PURE__ */ jsx22(Ago, { time: x.created }) }),
      x.tags?.length || x.categories?.length ? /* @__PURE__ */ jsx22(Fact2, { name: "labels", children: /* @__PURE__ */ jsx22(Labels, { x }) }) : null,
      x.dataUrl ? /* @__PURE__ */ jsxs22(Fact2, { name: "data", children: [
        x.dataType,
        " ",
        /* @__PURE__ */ jsx22("code", { children: x.dataUrl })
      ] }) : null
    ] }),
    masked ? /* @__PURE__ */ jsx22("p", { class: "note", children: t("templateMasked") }) : null,
    /* @__PURE__ */ jsxs22("div", { class: "editor-and-check", children: [
      /* @__PURE__ */ jsxs22("div", { children: [
        x.description ? /* @__PURE__ */ jsx22("div", { class: "description", children: x.description }) : null,
        /* @__PURE__ */ jsxs22("div", { class: "filters", children: [
          /* @__PURE__ */ jsx22("h2", { children: t("jobFile") }),
          /* @__PURE__ */ jsx22("span", { class: "grow" }),
          /* @__PURE__ */ jsxs22("button", { type: "button", onClick: () => void copy(file), children: [
            /* @__PURE__ */ jsx22(Icon, { name: "copy" }),
            " ",
            t("copy")
          ] }),
          /* @__PURE__ */ jsxs22("button", { type: "button", onClick: () => save(`${nameIn(x.job) || "job"}.yaml`, [file], "text/yaml"), children: [
            /* @__PURE__ */ jsx22(Icon, { name: "down" }),
            " ",
            t("download")
          ] })
        ] }),
        /* @__PURE__ */ jsx22("pre", { class: "code", children: file })
      ] }),
      /* @__PURE__ */ jsxs22("aside", { children: [
        /* @__PURE__ */ jsx22(Parameters, { text: file, change, done: () => go(address(place.value.path, Object.fromEntries(given())), true) }),
        /* @__PURE__ */ jsx22("p", { class: "faint", children: t("useHint") })
      ] })
    ] })
  ] });
}
function Fact2({ name, children }) {
  return /* @__PURE__ */ jsxs22("div", { children: [
    /* @__PURE__ */ jsx22("dt", { children: t(name) }),
    /* @__PURE__ */ jsx22("dd", { children })
  ] });
}
function NewTemplate() {
  const of = place.value.query.get("job") ?? "";
  const { value, error, again } = useRead2(of, async (signal11) => {
    if (!of) return place.value.query.get("from") === "submit" ? text.value : "";
    const [user, name] = of.split("/");
    const job2 = await call("GET /api/v3/jobs/{user}/{name}/brief", { path: { user: user ?? "", name: name ?? "" }, signal: signal11 });
    return job2.config ?? "";
  });
  useEffect22(() => {
    document.title = t("newTemplate") + " – paictl";
  }, []);
  if (value.value === null) return error.value ? /* @__PURE__ */ jsx22(Problem, { of: error.value, again }) : /* @__PURE__ */ jsx22(Loading, {});
  const job = value.value;
  const spec = { name: nameIn(job), author: me.value.name, type: "template", job };
  return /* @__PURE__ */ jsx22(Edit, { title: of ? t("templateOf", { job: of }) : t("newTemplate"), spec, store: (body) => call("POST /api/v3/templates", { body }), done: (x) => go(address(["templates", x.id]), true), cancel: address(of ? ["jobs", ...of.split("/")] : ["templates"]) });
}
function words2(text2) {
  return text2.split(/[,，]/).map((x) => x.trim()).filter(Boolean);
}
function Edit({ title, spec, store, done: done2, cancel }) {
  const form = useRef12(null);
  const error = useSignal17(null);
  const busy = useSignal17(false);
  const dirty = useRef12(false);
  const open = useSignal17(spec.public ? "public" : spec.groups?.length ? "groups" : "private");
  const groups = [.../* @__PURE__ */ new Set([...spec.groups ?? [], ...me.value?.groups ?? []])].sort();
  useEffect22(() => {
    const leaves = (e) => {
      if (dirty.current) e.preventDefault();
    };
    addEventListener("beforeunload", leaves);
    return () => removeEventListener("beforeunload", leaves);
  }, []);
  const send = async (e) => {
    e.preventDefault();
    const f = new FormData(form.current);
    const text2 = (name) => String(f.get(name) ?? "");
    const categories2 = words2(text2("categories")).filter((c) => c !== official);
    if (f.get("official")) categories2.push(official);
    busy.value = true;
    error.value = null;
    try {
      const next = await store({
        ...spec,
        name: text2("name").trim(),
        summary: text2("summary").trim(),
        description: text2("description").replaceAll("\r\n", "\n"),
        categories: categories2,
        tags: words2(text2("tags")),
        public: open.value === "public",
        groups: open.value === "groups" ? f.getAll("groups").map(String) : [],
        job: text2("job").replaceAll("\r\n", "\n")
      });
      dirty.current = false;
      toast(t("done.keepTemplate"));
      done2(next);
    } catch (e2) {
      error.value = failure(e2);
      scrollTo(0, 0);
    } finally {
      busy.value = false;
    }
  };
  return /* @__PURE__ */ jsx22("section", { class: "page", children: /* @__PURE__ */ jsxs22("form", { ref: form, class: "fields", onSubmit: (e) => void send(e), onInput: () => dirty.current = true, children: [
    /* @__PURE__ */ jsxs22("header", { class: "top", children: [
      /* @__PURE__ */ jsx22("h1", { children: title }),
      /* @__PURE__ */ jsx22("span", { class: "grow" }),
      /* @__PURE__ */ jsx22("a", { class: "button", href: cancel, children: t("cancel") }),
      /* @__PURE__ */ jsx22("button", { type: "submit", class: "primary", disabled: busy.value, children: t("save") })
    ] }),
    error.value ? /* @__PURE__ */ jsxs22(Fragment19, { children: [
      /* @__PURE__ */ jsx22(Problem, { of: error.value }),
      error.value.findings.length ? /* @__PURE__ */ jsx22("ul", { class: "findings", children: error.value.findings.map((f, i) => /* @__PURE__ */ jsxs22("li", { children: [
        f.line ? t("line", { n: f.line }) + ": " : "",
        f.message,
        " ",
        f.remedy ? /* @__PURE__ */ jsx22("span", { class: "faint", children: f.remedy }) : null
      ] }, i)) }) : null
    ] }) : null,
    /* @__PURE__ */ jsxs22("div", { class: "columns", children: [
      /* @__PURE__ */ jsxs22("div", { children: [
        /* @__PURE__ */ jsxs22("label", { children: [
          /* @__PURE__ */ jsx22("span", { children: t("name") }),
          /* @__PURE__ */ jsx22("input", { name: "name", required: true, maxLength: 100, defaultValue: spec.name, autocomplete: "off" })
        ] }),
        /* @__PURE__ */ jsxs22("label", { children: [
          /* @__PURE__ */ jsx22("span", { children: t("summary") }),
          /* @__PURE__ */ jsx22("input", { name: "summary", maxLength: 1024, defaultValue: spec.summary, autocomplete: "off" })
        ] }),
        /* @__PURE__ */ jsxs22("label", { children: [
          /* @__PURE__ */ jsx22("span", { children: t("description") }),
          /* @__PURE__ */ jsx22("textarea", { name: "description", rows: 8, defaultValue: spec.description })
        ] }),
        /* @__PURE__ */ jsxs22("label", { children: [
          /* @__PURE__ */ jsx22("span", { children: t("tags") }),
          /* @__PURE__ */ jsx22("input", { name: "tags", defaultValue: spec.tags?.join(", "), autocomplete: "off" }),
          /* @__PURE__ */ jsx22("span", { class: "faint small", children: t("commas") })
        ] }),
        /* @__PURE__ */ jsxs22("label", { children: [
          /* @__PURE__ */ jsx22("span", { children: t("categories") }),
          /* @__PURE__ */ jsx22("input", { name: "categories", defaultValue: spec.categories?.filter((c) => c !== official).join(", "), autocomplete: "off" })
        ] }),
        me.value?.grants.administrator || spec.categories?.includes(official) ? /* @__PURE__ */ jsxs22("label", { class: "tick", children: [
          /* @__PURE__ */ jsx22("input", { type: "checkbox", name: "official", defaultChecked: spec.categories?.includes(official) }),
          " ",
          t("official")
        ] }) : null,
        /* @__PURE__ */ jsxs22("fieldset", { children: [
          /* @__PURE__ */ jsx22("legend", { children: t("sharedWith") }),
          ["private", "groups", "public"].map(
            (x) => x === "groups" && groups.length === 0 ? null : /* @__PURE__ */ jsxs22("label", { class: "tick", children: [
              /* @__PURE__ */ jsx22("input", { type: "radio", name: "open", value: x, checked: open.value === x, onChange: () => open.value = x }),
              " ",
              t(`share.${x}`)
            ] }, x)
          ),
          open.value === "groups" ? /* @__PURE__ */ jsx22("div", { class: "choices", children: groups.map((g) => /* @__PURE__ */ jsxs22("label", { class: "tick", children: [
            /* @__PURE__ */ jsx22("input", { type: "checkbox", name: "groups", value: g, defaultChecked: spec.groups?.includes(g) }),
            " ",
            g
          ] }, g)) }) : null
        ] })
      ] }),
      /* @__PURE__ */ jsxs22("label", { class: "file", children: [
        /* @__PURE__ */ jsx22("span", { children: t("jobFile") }),
        /* @__PURE__ */ jsx22("textarea", { name: "job", required: true, rows: 26, spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off", defaultValue: spec.job }),
        /* @__PURE__ */ jsx22("span", { class: "faint small", children: t("templateSecrets") })
      ] })
    ] })
  ] }) });
}

// pkg/portal/web/src/usage.tsx
import { useEffect as useEffect23 } from "./library.js";
import { Fragment as Fragment20, jsx as jsx23, jsxs as jsxs23 } from "./library.js";
var spans = ["7", "30", "90", "month"];
var dimensions = ["vc", "user", "type", "day"];
var day = 864e5;
function begin2(span) {
  const today = new Date(now.peek());
  const [y, m, d] = [today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate()];
  return new Date(span === "month" ? Date.UTC(y, m, 1) : Date.UTC(y, m, d - Number(span) + 1));
}
function hours(seconds, digits = 1) {
  return new Intl.NumberFormat(language.value, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(seconds / 3600);
}
function held(x) {
  return x.guaranteedSeconds + x.opportunisticSeconds;
}
function percent2(part, whole) {
  return whole > 0 ? new Intl.NumberFormat(language.value, { style: "percent", maximumFractionDigits: 1 }).format(part / whole) : "";
}
function nameOf(x, by) {
  return (by === "vc" ? x.virtualCluster : by === "user" ? x.user : by === "type" ? x.type : x.period?.slice(0, 10)) ?? "";
}
function byDay(u) {
  const known2 = new Map((u.items ?? []).map((x) => [x.period?.slice(0, 10), x]));
  const out = [];
  for (let at = Date.parse(u.since.slice(0, 10)); at < Date.parse(u.until); at += day) {
    const date = new Date(at).toISOString().slice(0, 10);
    out.push({ date, x: known2.get(date) ?? { guaranteedSeconds: 0, opportunisticSeconds: 0, preemptedSeconds: 0, failedSeconds: 0 } });
  }
  return out;
}
function round(x) {
  const power = 10 ** Math.floor(Math.log10(Math.max(x, 1e-3)));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map((n) => n * power).find((n) => n >= x);
}
var width = 1e3;
var height = 160;
function Chart({ u }) {
  const days = byDay(u);
  const top = round(Math.max(...days.map((d) => held(d.x))) / 3600) * 3600;
  const step = width / days.length;
  const bar = Math.max(step * 0.72, 1);
  const y = (seconds) => height - height * seconds / top;
  const date = new Intl.DateTimeFormat(language.value, { month: "short", day: "numeric", timeZone: "UTC" });
  return /* @__PURE__ */ jsxs23("figure", { class: "chart", children: [
    /* @__PURE__ */ jsxs23("figcaption", { children: [
      ["guaranteed", "opportunisticJobs", "preempted", "failedAttempts"].map((x) => /* @__PURE__ */ jsxs23("span", { class: "key", children: [
        /* @__PURE__ */ jsx23("i", { class: x }),
        " ",
        t(x)
      ] }, x)),
      /* @__PURE__ */ jsx23("span", { class: "grow" }),
      /* @__PURE__ */ jsx23("span", { class: "faint", children: t("hoursADay", { n: hours(top, 0) }) })
    ] }),
    /* @__PURE__ */ jsxs23("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": t("chartOf", { n: hours(held(u.total)), days: days.length }), children: [
      [0, 0.5].map((part) => /* @__PURE__ */ jsx23("line", { x1: "0", x2: width, y1: height * part, y2: height * part }, part)),
      days.map(({ date: name, x }, i) => {
        const lost2 = x.preemptedSeconds + x.failedSeconds;
        const left = i * step + (step - bar) / 2;
        return /* @__PURE__ */ jsxs23("g", { children: [
          /* @__PURE__ */ jsx23("title", { children: `${date.format(Date.parse(name))}: ${hours(held(x))} (${t("guaranteed")} ${hours(x.guaranteedSeconds)}, ${t("opportunisticJobs")} ${hours(x.opportunisticSeconds)}, ${t("preempted")} ${hours(x.preemptedSeconds)}, ${t("failedAttempts")} ${hours(x.failedSeconds)})` }),
          /* @__PURE__ */ jsx23("rect", { class: "whole", x: i * step, y: "0", width: step, height }),
          /* @__PURE__ */ jsx23("rect", { class: "guaranteed", x: left, y: y(x.guaranteedSeconds), width: bar, height: height - y(x.guaranteedSeconds) }),
          /* @__PURE__ */ jsx23("rect", { class: "opportunisticJobs", x: left, y: y(held(x)), width: bar, height: y(x.guaranteedSeconds) - y(held(x)) }),
          /* @__PURE__ */ jsx23("rect", { class: "failedAttempts", x: left, y: y(x.failedSeconds), width: bar / 2, height: height - y(x.failedSeconds) }),
          /* @__PURE__ */ jsx23("rect", { class: "preempted", x: left, y: y(lost2), width: bar / 2, height: y(x.failedSeconds) - y(lost2) })
        ] }, name);
      })
    ] }),
    /* @__PURE__ */ jsxs23("div", { class: "axis faint small", "aria-hidden": "true", children: [
      /* @__PURE__ */ jsx23("span", { children: date.format(Date.parse(days[0].date)) }),
      /* @__PURE__ */ jsx23("span", { children: date.format(Date.parse(days.at(-1).date)) })
    ] })
  ] });
}
var columns8 = (by) => [
  [by === "vc" ? "virtualCluster" : by, (x) => nameOf(x, by)],
  ["gpuHours", (x) => Number((held(x) / 3600).toFixed(2))],
  ["guaranteed", (x) => Number((x.guaranteedSeconds / 3600).toFixed(2))],
  ["opportunistic", (x) => Number((x.opportunisticSeconds / 3600).toFixed(2))],
  ["preempted", (x) => Number((x.preemptedSeconds / 3600).toFixed(2))],
  ["failed", (x) => Number((x.failedSeconds / 3600).toFixed(2))]
];
function UsagePage() {
  const q = place.value.query;
  const span = spans.find((x) => x === q.get("span")) ?? "30";
  const of = q.get("of") ?? "me";
  const vc = of.startsWith("vc:") ? of.slice(3) : "";
  const user = of === "me" ? me.value.name : "";
  const chosen2 = dimensions.find((x) => x === q.get("by")) ?? "vc";
  const by = vc && chosen2 === "vc" ? "day" : chosen2;
  const since2 = begin2(span).toISOString().replace(".000", "");
  const query = { user, vc, since: since2, by: [by] };
  const table = useRead2(JSON.stringify(query), (signal11) => call("GET /api/v3/usage", { query, signal: signal11 }));
  const days = useRead2(JSON.stringify({ ...query, by: [] }), (signal11) => call("GET /api/v3/usage", { query: { ...query, by: ["day"] }, signal: signal11 }));
  useEffect23(() => {
    document.title = t("usagePage") + " – paictl";
  }, []);
  const rows = [...table.value.value?.items ?? []];
  if (by !== "day") rows.sort((a, b) => held(b) - held(a));
  else rows.reverse();
  const u = table.value.value;
  const total = u?.total;
  const vcs = [.../* @__PURE__ */ new Set([...ownVCs(), ...vc ? [vc] : []])].sort();
  const command2 = ["paictl job usage", "--by " + by, "--since " + since2.slice(0, 10)];
  if (user) command2.push("--user " + quoted(user));
  if (vc) command2.push("--vc " + quoted(vc));
  const share = rows.some((x) => x.shareOfGuarantee !== void 0);
  return /* @__PURE__ */ jsxs23("section", { class: "page usage", children: [
    /* @__PURE__ */ jsxs23("header", { class: "top", children: [
      /* @__PURE__ */ jsx23("h1", { children: t("usagePage") }),
      /* @__PURE__ */ jsx23("span", { class: "grow" }),
      /* @__PURE__ */ jsx23(
        Menu,
        {
          label: t("more"),
          icon: "more",
          items: [
            { label: t("copyPaictl"), icon: "copy", run: () => void copy(command2.join(" ")) },
            { label: t("copyCurl"), icon: "copy", run: () => void copy(curl("GET /api/v3/usage", { query })) },
            { label: t("copyLink"), icon: "link", run: () => void copy(location.href) }
          ]
        }
      ),
      /* @__PURE__ */ jsxs23("button", { type: "button", disabled: rows.length === 0, onClick: () => save("gpu-hours.csv", [csv(rows, columns8(by))], "text/csv;charset=utf-8"), children: [
        /* @__PURE__ */ jsx23(Icon, { name: "down" }),
        " ",
        t("csv")
      ] })
    ] }),
    /* @__PURE__ */ jsxs23("div", { class: "filters", children: [
      /* @__PURE__ */ jsx23("div", { class: "segments", role: "group", "aria-label": t("timeSpan"), children: spans.map((x) => /* @__PURE__ */ jsx23("button", { type: "button", "aria-pressed": span === x, onClick: () => setQuery({ span: x === "30" ? void 0 : x }), children: x === "month" ? t("thisMonth") : t("lastDays", { n: x }) }, x)) }),
      /* @__PURE__ */ jsxs23("select", { "aria-label": t("usageOf"), value: of, onChange: (e) => setQuery({ of: e.currentTarget.value === "me" ? void 0 : e.currentTarget.value }), children: [
        /* @__PURE__ */ jsx23("option", { value: "me", children: t("usageOfMe") }),
        me.value?.grants.administrator || of === "all" ? /* @__PURE__ */ jsx23("option", { value: "all", children: t("usageOfAll") }) : null,
        vcs.map((v) => /* @__PURE__ */ jsx23("option", { value: "vc:" + v, children: t("usageOfVC", { vc: v }) }, v))
      ] }),
      /* @__PURE__ */ jsx23("div", { class: "segments", role: "group", "aria-label": t("rowsBy"), children: dimensions.map(
        (x) => x === "vc" && vc || x === "user" && user ? null : /* @__PURE__ */ jsx23("button", { type: "button", "aria-pressed": by === x, onClick: () => setQuery({ by: x === "vc" ? void 0 : x }), children: t(`by.${x}`) }, x)
      ) })
    ] }),
    table.error.value ? /* @__PURE__ */ jsx23(Problem, { of: table.error.value, again: table.again }) : null,
    !u || !total ? table.error.value ? null : /* @__PURE__ */ jsx23(Loading, {}) : held(total) === 0 ? /* @__PURE__ */ jsxs23("div", { class: "empty", children: [
      /* @__PURE__ */ jsx23("p", { children: t("noUsage") }),
      /* @__PURE__ */ jsx23("p", { class: "faint", children: t("noUsageHint") })
    ] }) : /* @__PURE__ */ jsxs23(Fragment20, { children: [
      /* @__PURE__ */ jsxs23("dl", { class: "facts totals", children: [
        /* @__PURE__ */ jsx23(Amount, { name: t("gpuHours"), value: hours(held(total)) }),
        /* @__PURE__ */ jsx23(Amount, { name: t("guaranteed"), value: hours(total.guaranteedSeconds), more: percent2(total.guaranteedSeconds, held(total)) }),
        /* @__PURE__ */ jsx23(Amount, { name: t("opportunisticJobs"), value: hours(total.opportunisticSeconds), more: percent2(total.opportunisticSeconds, held(total)) }),
        /* @__PURE__ */ jsx23(Amount, { name: t("preempted"), value: hours(total.preemptedSeconds), more: percent2(total.preemptedSeconds, held(total)) }),
        /* @__PURE__ */ jsx23(Amount, { name: t("failedAttempts"), value: hours(total.failedSeconds), more: percent2(total.failedSeconds, held(total)) })
      ] }),
      days.value.value ? /* @__PURE__ */ jsx23(Chart, { u: days.value.value }) : /* @__PURE__ */ jsx23("div", { class: "chart" }),
      /* @__PURE__ */ jsx23("div", { class: "scrolls", children: /* @__PURE__ */ jsxs23("table", { class: table.busy.value ? "rows old" : "rows", "aria-busy": table.busy.value, children: [
        /* @__PURE__ */ jsx23("thead", { children: /* @__PURE__ */ jsxs23("tr", { children: [
          /* @__PURE__ */ jsx23("th", { children: t(`by.${by}`) }),
          /* @__PURE__ */ jsx23("th", { class: "num", children: t("gpuHours") }),
          /* @__PURE__ */ jsx23("th", { class: "num", children: t("guaranteed") }),
          /* @__PURE__ */ jsx23("th", { class: "num", children: t("opportunisticJobs") }),
          /* @__PURE__ */ jsx23("th", { class: "num", children: t("preempted") }),
          /* @__PURE__ */ jsx23("th", { class: "num", children: t("failedAttempts") }),
          share ? /* @__PURE__ */ jsx23("th", { class: "num", title: t("shareMore"), children: t("share") }) : null
        ] }) }),
        /* @__PURE__ */ jsx23("tbody", { children: rows.map((x) => /* @__PURE__ */ jsxs23("tr", { children: [
          /* @__PURE__ */ jsx23("td", { children: nameOf(x, by) || /* @__PURE__ */ jsx23("span", { class: "faint", children: t("unknown") }) }),
          /* @__PURE__ */ jsx23("td", { class: "num", children: hours(held(x)) }),
          /* @__PURE__ */ jsx23("td", { class: "num", children: hours(x.guaranteedSeconds) }),
          /* @__PURE__ */ jsx23("td", { class: "num", children: hours(x.opportunisticSeconds) }),
          /* @__PURE__ */ jsx23("td", { class: "num", children: hours(x.preemptedSeconds) }),
          /* @__PURE__ */ jsx23("td", { class: "num", children: hours(x.failedSeconds) }),
          share ? /* @__PURE__ */ jsx23("td", { class: "num", children: x.shareOfGuarantee === void 0 ? "" : percent2(x.shareOfGuarantee, 1) }) : null
        ] }, nameOf(x, by))) })
      ] }) }),
      /* @__PURE__ */ jsx23("p", { class: "faint small under", children: t("usageHint") })
    ] })
  ] });
}
function Amount({ name, value, more }) {
  return /* @__PURE__ */ jsxs23("div", { children: [
    /* @__PURE__ */ jsx23("dt", { children: name }),
    /* @__PURE__ */ jsxs23("dd", { children: [
      /* @__PURE__ */ jsx23("b", { children: value }),
      " ",
      more ? /* @__PURE__ */ jsx23("span", { class: "faint", children: more }) : null
    ] })
  ] });
}

// pkg/portal/web/src/main.tsx
import { Fragment as Fragment21, jsx as jsx24, jsxs as jsxs24 } from "./library.js";
function Page() {
  const [first, user, name, rest] = place.value.path;
  if (first === void 0) return /* @__PURE__ */ jsx24(Home, {});
  if (first === "jobs" && user === void 0) return /* @__PURE__ */ jsx24(Jobs, {});
  if (first === "jobs" && name !== void 0 && rest === void 0) return /* @__PURE__ */ jsx24(JobPage, { user, name }, user + "/" + name);
  if (first === "submit" && user === void 0) return /* @__PURE__ */ jsx24(Submit, {});
  if (first === "machines" && user === void 0) return /* @__PURE__ */ jsx24(Machines, {});
  if (first === "queue" && user === void 0) return /* @__PURE__ */ jsx24(QueuePage, {});
  if (first === "usage" && user === void 0) return /* @__PURE__ */ jsx24(UsagePage, {});
  if (first === "profile" && user === void 0) return /* @__PURE__ */ jsx24(Profile, {});
  if (first === "templates" && name === void 0) return user === void 0 ? /* @__PURE__ */ jsx24(Templates, {}) : user === "new" ? /* @__PURE__ */ jsx24(NewTemplate, {}) : /* @__PURE__ */ jsx24(TemplatePage, { id: user }, user);
  if (first === "admin" && rest === void 0) return /* @__PURE__ */ jsx24(Admin, { tab: user, name });
  return /* @__PURE__ */ jsx24("p", { class: "empty", children: t("notFound") });
}
function NavLink({ path, icon: icon2, label, at }) {
  return /* @__PURE__ */ jsxs24("a", { href: address(path), "aria-current": at ? "page" : void 0, title: label, children: [
    /* @__PURE__ */ jsx24(Icon, { name: icon2 }),
    /* @__PURE__ */ jsx24("span", { children: label })
  ] });
}
function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}
function setTheme(name) {
  if (name === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem("theme");
  } else {
    document.documentElement.dataset.theme = name;
    localStorage.setItem("theme", name);
  }
}
function Side() {
  const first = place.value.path[0];
  const chosen2 = useSignal18(theme());
  const leave = () => signOut().catch((e) => toast(failure(e).message));
  return /* @__PURE__ */ jsxs24("nav", { class: "side", children: [
    /* @__PURE__ */ jsxs24("a", { class: "brand", href: base, children: [
      /* @__PURE__ */ jsxs24("svg", { viewBox: "0 0 20 20", "aria-hidden": "true", children: [
        /* @__PURE__ */ jsx24("path", { d: "M2 2h7v7H2zM11 2h7v7h-7zM2 11h7v7H2z" }),
        /* @__PURE__ */ jsx24("path", { class: "lit", d: "M11 11h7v7h-7z" })
      ] }),
      /* @__PURE__ */ jsx24("span", { children: "paictl" })
    ] }),
    /* @__PURE__ */ jsxs24("div", { class: "links", children: [
      /* @__PURE__ */ jsx24(NavLink, { path: [], icon: "home", label: t("home"), at: first === void 0 }),
      /* @__PURE__ */ jsx24(NavLink, { path: ["jobs"], icon: "jobs", label: t("jobs"), at: first === "jobs" }),
      /* @__PURE__ */ jsx24(NavLink, { path: ["submit"], icon: "plus", label: t("submit"), at: first === "submit" }),
      /* @__PURE__ */ jsx24(NavLink, { path: ["templates"], icon: "file", label: t("templates"), at: first === "templates" }),
      /* @__PURE__ */ jsx24(NavLink, { path: ["queue"], icon: "queue", label: t("queue"), at: first === "queue" }),
      /* @__PURE__ */ jsx24(NavLink, { path: ["machines"], icon: "machines", label: t("machines"), at: first === "machines" }),
      /* @__PURE__ */ jsx24(NavLink, { path: ["usage"], icon: "usage", label: t("usagePage"), at: first === "usage" }),
      me.value?.grants.administrator ? /* @__PURE__ */ jsx24(NavLink, { path: ["admin"], icon: "shield", label: t("admin"), at: first === "admin" }) : null
    ] }),
    pages2.value.length > 0 ? /* @__PURE__ */ jsxs24("div", { class: "links others", children: [
      /* @__PURE__ */ jsx24("h2", { children: t("pages") }),
      pages2.value.map((p) => /* @__PURE__ */ jsxs24("a", { href: p.url, "data-leave": true, target: "_blank", rel: "noreferrer", children: [
        /* @__PURE__ */ jsx24(Icon, { name: "page" }),
        /* @__PURE__ */ jsx24("span", { children: p.name })
      ] }, p.url))
    ] }) : null,
    /* @__PURE__ */ jsx24("div", { class: "person", children: /* @__PURE__ */ jsxs24(
      Menu,
      {
        label: me.value?.name ?? "",
        items: [
          { label: t("profile"), icon: "person", run: () => go(address(["profile"])) },
          null,
          ...["auto", "light", "dark"].map((name) => ({
            label: `${t("theme")}: ${t("theme." + name)}`,
            icon: chosen2.value === name ? "check" : void 0,
            run: () => {
              setTheme(name);
              chosen2.value = name;
            }
          })),
          null,
          ...languages.map(([code, name]) => ({ label: name, icon: language.value === code ? "check" : void 0, run: () => speak(code) })),
          null,
          { label: t("shortcuts"), icon: "keys", run: () => help.value = true },
          { label: t("signOut"), icon: "out", run: () => void leave() }
        ],
        children: [
          /* @__PURE__ */ jsx24("span", { class: "face", "aria-hidden": "true", children: (me.value?.name ?? "?").slice(0, 1).toUpperCase() }),
          /* @__PURE__ */ jsx24("span", { class: "who", children: me.value?.displayName || me.value?.name })
        ]
      }
    ) })
  ] });
}
function Help() {
  const box = useRef13(null);
  useEffect24(() => {
    if (help.value) box.current?.showModal();
    else box.current?.close();
  }, [help.value]);
  return /* @__PURE__ */ jsx24("dialog", { ref: box, onClose: () => help.value = false, onClick: (e) => e.target === box.current && (help.value = false), "aria-labelledby": "keys", children: /* @__PURE__ */ jsxs24("div", { class: "dialog", children: [
    /* @__PURE__ */ jsx24("h2", { id: "keys", children: t("shortcuts") }),
    /* @__PURE__ */ jsx24("dl", { class: "keys", children: all.map(([keys2, text2]) => /* @__PURE__ */ jsxs24("div", { children: [
      /* @__PURE__ */ jsx24("dt", { children: keys2.split("  ").map((k) => /* @__PURE__ */ jsx24("kbd", { children: k }, k)) }),
      /* @__PURE__ */ jsx24("dd", { children: t(text2) })
    ] }, keys2)) }),
    /* @__PURE__ */ jsx24("div", { class: "buttons", children: /* @__PURE__ */ jsx24("button", { type: "button", onClick: () => help.value = false, children: t("close") }) })
  ] }) });
}
function App() {
  if (refused.value && refused.value.status !== 401) {
    return /* @__PURE__ */ jsx24("main", { class: "alone", children: /* @__PURE__ */ jsx24(Problem, { of: refused.value, again: () => void begin() }) });
  }
  if (!me.value) return refused.value ? null : /* @__PURE__ */ jsx24(Loading, {});
  return /* @__PURE__ */ jsxs24(Fragment21, { children: [
    /* @__PURE__ */ jsx24(Side, {}),
    /* @__PURE__ */ jsxs24("main", { children: [
      /* @__PURE__ */ jsx24(Lost, {}),
      /* @__PURE__ */ jsx24(Page, {})
    ] }),
    /* @__PURE__ */ jsx24(Toasts, {}),
    /* @__PURE__ */ jsx24(Asking, {}),
    /* @__PURE__ */ jsx24(Help, {})
  ] });
}
var icon = document.querySelector("link[rel=icon]");
if (icon) icon.href = icon.href;
start();
listen();
void begin();
render(/* @__PURE__ */ jsx24(App, {}), document.getElementById("app"));
