// Made from the table of routes by: go test ./pkg/server/openapi -update

/** The routes, by method and path. */
export interface Routes {
  /** Lists the requests to stop or requeue jobs, or to change machines, and their results, latest first. */
  "GET /api/v3/actions": { query: { phase?: string[]; machine?: string; job?: string; limit?: number; cursor?: string }; answer: V3ApiActions };
  /** Requests that a job is stopped or requeued, a machine is cordoned, uncordoned, drained or restarted, or a GPU is reset. */
  "POST /api/v3/actions": { body: V3ApiNewAction; answer: V3ApiAction };
  /** Returns a request and its result. */
  "GET /api/v3/actions/{action}": { path: { action: string }; answer: V3ApiAction };
  /** Withdraws a request that hasn't begun, or stops a drain. */
  "POST /api/v3/actions/{action}/cancel": { path: { action: string }; body: V3ApiCancellation; answer: V3ApiAction };
  /** Lists the firing alerts about your jobs, silenced ones as well, latest first; all alerts for administrators and for people with a grant for the page alerts. */
  "GET /api/v3/alerts": { answer: V3ApiAlerts };
  /** Lists the records of the audit, latest first. */
  "GET /api/v3/audit": { query: { actor?: string; object?: string; owner?: string; kind?: string; verb?: string; outcome?: string; since?: string; until?: string; cursor?: string; limit?: number }; answer: AuditPage };
  /** Reports whether you have sent a folder of code. */
  "HEAD /api/v3/code/{sha256}": { path: { sha256: string }; answer: Record<string, unknown> };
  /** Stores a packed folder of code. */
  "PUT /api/v3/code/{sha256}": { path: { sha256: string }; answer: Record<string, unknown> };
  /** Creates the first administrator, with a one-time code. */
  "POST /api/v3/first": { body: { code: string; password: string; username: string }; answer: V3ApiFirst };
  /** Lists the GPUs of all nodes, and their problems. */
  "GET /api/v3/gpus": { answer: V3ApiGPUs };
  /** Lists groups. */
  "GET /api/v3/groups": { answer: V3ApiGroups };
  /** Deletes a group. */
  "DELETE /api/v3/groups/{group}": { path: { group: string }; answer: Record<string, unknown> };
  /** Returns a group. */
  "GET /api/v3/groups/{group}": { path: { group: string }; answer: V3ApiGroup };
  /** Creates or replaces a group. */
  "PUT /api/v3/groups/{group}": { path: { group: string }; body: V3ApiGroupChange; answer: V3ApiGroup };
  /** Lists the images that all machines hold. */
  "GET /api/v3/images": { answer: V3ApiImages };
  /** Lists jobs, newest first. */
  "GET /api/v3/jobs": { query: { user?: string; vc?: string; keyword?: string; name?: string; state?: string[]; since?: string; earlier?: boolean; limit?: number; cursor?: string }; answer: ListingPage };
  /** Submits a job file; with ?check=true, only checks it; with &outlook=true, also returns whether it would start now, and what it costs. */
  "POST /api/v3/jobs": { query: { check?: boolean; outlook?: boolean }; body: V3ApiSubmission; answer: V3SubmitOut };
  /** Streams a list of jobs, and then its changes, as server-sent events. */
  "GET /api/v3/jobs/watch": { query: { user?: string; vc?: string; keyword?: string; name?: string; state?: string[]; since?: string; earlier?: boolean; limit?: number }; answer: string };
  /** Deletes a job; with ?history=true, removes its name from the history. */
  "DELETE /api/v3/jobs/{user}/{name}": { path: { user: string; name: string }; query: { history?: boolean }; answer: V3ApiChanged | V3ApiForgotten };
  /** Returns a job, with its attempts and tasks. */
  "GET /api/v3/jobs/{user}/{name}": { path: { user: string; name: string }; answer: JobDetail };
  /** Lists the operations on a job that you may use. */
  "GET /api/v3/jobs/{user}/{name}/allowed": { path: { user: string; name: string }; answer: V3ApiAllowed };
  /** Returns a job, without its attempts. */
  "GET /api/v3/jobs/{user}/{name}/brief": { path: { user: string; name: string }; answer: JobJob };
  /** Lists the Kubernetes events of a job. */
  "GET /api/v3/jobs/{user}/{name}/events": { path: { user: string; name: string }; answer: V3ApiEvents };
  /** Streams the state of a job, whenever it changes, until it has finished. */
  "GET /api/v3/jobs/{user}/{name}/follow": { path: { user: string; name: string }; answer: V3ApiFrame };
  /** Returns an unused name for a copy of a job. */
  "GET /api/v3/jobs/{user}/{name}/freename": { path: { user: string; name: string }; answer: V3ApiFreeName };
  /** Streams lines of the logs of a job's tasks. */
  "GET /api/v3/jobs/{user}/{name}/logs": { path: { user: string; name: string }; query: { role?: string; task?: number; attempt?: number; previous?: boolean; follow?: boolean; since?: string; tail?: number; match?: string }; answer: V3ApiFrame };
  /** Returns how the tasks of a job used their resources over time, with sentences that explain the figures. */
  "GET /api/v3/jobs/{user}/{name}/metrics": { path: { user: string; name: string }; query: { task?: string; since?: string; until?: string; points?: number }; answer: MetricsReport };
  /** Returns the job that a job was cloned from, with the job file if you may read it. */
  "GET /api/v3/jobs/{user}/{name}/parent": { path: { user: string; name: string }; answer: JobJob };
  /** Runs a job again, as it was submitted. */
  "POST /api/v3/jobs/{user}/{name}/retry": { path: { user: string; name: string }; answer: V3ApiChanged };
  /** Changes the number of tasks of a role. */
  "POST /api/v3/jobs/{user}/{name}/scale": { path: { user: string; name: string }; body: V3ApiScale; answer: V3ApiScaled };
  /** Stops a job. */
  "POST /api/v3/jobs/{user}/{name}/stop": { path: { user: string; name: string }; answer: V3ApiChanged };
  /** Removes tags from a job. */
  "DELETE /api/v3/jobs/{user}/{name}/tags": { path: { user: string; name: string }; body: V3ApiTags; answer: V3ApiTags };
  /** Adds tags to a job. */
  "PUT /api/v3/jobs/{user}/{name}/tags": { path: { user: string; name: string }; body: V3ApiTags; answer: V3ApiTags };
  /** Lists the running tasks of a job. */
  "GET /api/v3/jobs/{user}/{name}/targets": { path: { user: string; name: string }; answer: V3ApiTargets };
  /** Runs a command in a task, over an upgraded connection. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec": { path: { user: string; name: string; role: string; index: string }; query: { command?: string[]; stdin?: boolean; stdout?: boolean; stderr?: boolean; tty?: boolean }; answer: unknown };
  /** Runs a command in a task, over an upgraded connection. */
  "POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec": { path: { user: string; name: string; role: string; index: string }; query: { command?: string[]; stdin?: boolean; stdout?: boolean; stderr?: boolean; tty?: boolean }; answer: unknown };
  /** Returns a ticket with which a browser opens a WebSocket to /jobs/{user}/{name}/tasks/{role}/{index}/exec, once, within 30 seconds. */
  "POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec/ticket": { path: { user: string; name: string; role: string; index: string }; answer: V3ApiTicket };
  /** Lists a folder of a running task. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files": { path: { user: string; name: string; role: string; index: string }; query: { path?: string }; answer: V3ApiFiles };
  /** Returns a file of a running task, or a folder as a gzipped tar. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files/content": { path: { user: string; name: string; role: string; index: string }; query: { path?: string }; answer: string };
  /** Writes a file into a running task. */
  "PUT /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/files/content": { path: { user: string; name: string; role: string; index: string }; query: { path?: string }; answer: Record<string, unknown> };
  /** Returns lines of a task's log from a position on, or those before it. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log": { path: { user: string; name: string; role: string; index: string }; query: { attempt?: number; taskAttempt?: number; previous?: boolean; at?: string; before?: boolean; lines?: number; longest?: number; wait?: string }; answer: LogsWindow };
  /** Searches a part of a task's log, and returns the positions of lines that match. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/matches": { path: { user: string; name: string; role: string; index: string }; query: { attempt?: number; taskAttempt?: number; previous?: boolean; from?: string; match?: string; limit?: number }; answer: LogsMatches };
  /** Returns a task's whole log as a file. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/text": { path: { user: string; name: string; role: string; index: string }; query: { attempt?: number; taskAttempt?: number; previous?: boolean; of?: string; times?: boolean }; answer: string };
  /** Connects to ports of a task, over an upgraded connection. */
  "GET /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/portforward": { path: { user: string; name: string; role: string; index: string }; answer: unknown };
  /** Connects to ports of a task, over an upgraded connection. */
  "POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/portforward": { path: { user: string; name: string; role: string; index: string }; answer: unknown };
  /** Returns a ticket with which a browser opens a WebSocket to /jobs/{user}/{name}/tasks/{role}/{index}/portforward, once, within 30 seconds. */
  "POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/portforward/ticket": { path: { user: string; name: string; role: string; index: string }; answer: V3ApiTicket };
  /** Measures the resource usage of a job's tasks. */
  "GET /api/v3/jobs/{user}/{name}/top": { path: { user: string; name: string }; answer: V3ApiTop };
  /** Explains why a job waits, or how it ended. */
  "GET /api/v3/jobs/{user}/{name}/why": { path: { user: string; name: string }; answer: JobWhy };
  /** Returns how a machine used its resources over time, with sentences that explain the figures. */
  "GET /api/v3/machines/{machine}/metrics": { path: { machine: string }; query: { since?: string; until?: string; points?: number }; answer: MetricsReport };
  /** Returns the resources that a job may request. */
  "GET /api/v3/offer": { answer: JobOffer };
  /** Describes this API, as OpenAPI 3.1. */
  "GET /api/v3/openapi.json": { answer: Record<string, unknown> };
  /** Lists the queue of a virtual cluster. */
  "GET /api/v3/queue": { query: { vc?: string; limit?: number }; answer: JobWaitingList };
  /** Sums up how GPUs were given, used and lost, by virtual cluster and person; yours, or everyone's for administrators. */
  "GET /api/v3/report": { query: { user?: string; vc?: string; since?: string; until?: string }; answer: ReportReport };
  /** Lists the platform's services: state, pods, release and problems of each. */
  "GET /api/v3/services": { answer: StateReport };
  /** Ends a browser's session and removes its cookie, even if the session has already ended. */
  "DELETE /api/v3/session": { answer: Record<string, unknown> };
  /** Returns the owner of a browser's session, and the pages it may show. */
  "GET /api/v3/session": { answer: PagesSession };
  /** Starts a browser's session with a password. */
  "POST /api/v3/session": { body: { password: string; to: string; username: string }; answer: PagesBegun };
  /** Returns the ways to sign in. */
  "GET /api/v3/signin": { answer: V3ApiSignInMethods };
  /** Approves or refuses a program that waits, by the approval that a sign-in for it returned. */
  "POST /api/v3/signin/approval": { body: { allow: boolean; approval: string }; answer: Record<string, unknown> };
  /** Returns the program that shows a code and waits for its sign-in. */
  "GET /api/v3/signin/device": { query: { code?: string }; answer: V3ApiWaiting };
  /** Approves or refuses the sign-in of a program that shows a code. */
  "POST /api/v3/signin/device": { body: V3LetInBody; answer: Record<string, unknown> };
  /** Sends a browser to an issuer of OpenID Connect. */
  "POST /api/v3/signin/oidc/{issuer}": { path: { issuer: string }; body: V3ApiGoal; answer: V3ApiGo };
  /** Finishes a browser's sign-in at an issuer of OpenID Connect. */
  "GET /api/v3/signin/oidc/{issuer}/return": { path: { issuer: string }; answer: string };
  /** Signs a program in by a password that its person types into a browser. */
  "POST /api/v3/signin/password": { body: { goal: V3ApiGoal; password: string; username: string }; answer: V3ApiArrival };
  /** Lists the silences of alerts that haven't ended. */
  "GET /api/v3/silences": { answer: V3ApiSilences };
  /** Silences alerts for a time. */
  "POST /api/v3/silences": { body: V3ApiNewSilence; answer: V3ApiSilence };
  /** Ends a silence. */
  "DELETE /api/v3/silences/{silence}": { path: { silence: string }; answer: V3ApiSilence };
  /** Returns the state of the cluster, as far as you may see it: problems, machines, GPUs, virtual clusters, jobs and alerts. */
  "GET /api/v3/status": { query: { parts?: string[] }; answer: StatusCluster };
  /** Streams the state of the cluster, and then its changes, as server-sent events. */
  "GET /api/v3/status/watch": { query: { parts?: string[] }; answer: StatusDelta };
  /** Lists all storages, their kinds, and the groups that may use them. */
  "GET /api/v3/storages": { answer: V3ApiStorages };
  /** Lists job templates, without descriptions and job files. */
  "GET /api/v3/templates": { query: { author?: string; name?: string; keyword?: string }; answer: V3ApiTemplates };
  /** Adds a job template, and masks the secrets of its job file. */
  "POST /api/v3/templates": { body: PeopleV1TemplateSpec; answer: V3ApiTemplate };
  /** Removes a job template. */
  "DELETE /api/v3/templates/{template}": { path: { template: string }; answer: Record<string, unknown> };
  /** Returns a job template, with its job file. */
  "GET /api/v3/templates/{template}": { path: { template: string }; answer: V3ApiTemplate };
  /** Replaces a job template. */
  "PUT /api/v3/templates/{template}": { path: { template: string }; body: V3ApiTemplateChange; answer: V3ApiTemplate };
  /** Removes your star from a job template. */
  "DELETE /api/v3/templates/{template}/star": { path: { template: string }; answer: V3ApiTemplate };
  /** Stars a job template. */
  "PUT /api/v3/templates/{template}/star": { path: { template: string }; answer: V3ApiTemplate };
  /** Counts a job that was submitted from a template. */
  "POST /api/v3/templates/{template}/use": { path: { template: string }; answer: Record<string, unknown> };
  /** Creates a new key that signs tokens. */
  "POST /api/v3/token-keys": { body: V3ApiKeyRotation; answer: Record<string, unknown> };
  /** Lists your tokens, without their texts. */
  "GET /api/v3/tokens": { query: { user?: string; all?: boolean }; answer: V3ApiTokenRecords };
  /** Creates a token for programs, and shows it once. */
  "POST /api/v3/tokens": { body: V3ApiNewToken; answer: V3ApiIssuedToken };
  /** Revokes a token. */
  "DELETE /api/v3/tokens/{token}": { path: { token: string }; answer: Record<string, unknown> };
  /** Sums up GPU time. */
  "GET /api/v3/usage": { query: { user?: string; vc?: string; type?: string; since?: string; until?: string; by?: string[] }; answer: JobUsage };
  /** Lists people. */
  "GET /api/v3/users": { answer: V3ApiUsers };
  /** Adds a person. */
  "POST /api/v3/users": { body: V3ApiNewUser; answer: V3ApiUser };
  /** Removes a person; the name stays taken. */
  "DELETE /api/v3/users/{user}": { path: { user: string }; answer: Record<string, unknown> };
  /** Returns a person. */
  "GET /api/v3/users/{user}": { path: { user: string }; answer: V3ApiUser };
  /** Replaces a person. */
  "PUT /api/v3/users/{user}": { path: { user: string }; body: V3ApiUserChange; answer: V3ApiUser };
  /** Restores the default notices of a person. */
  "DELETE /api/v3/users/{user}/notifications": { path: { user: string }; answer: V3ApiNotifications };
  /** Returns the notices that a person gets, and where. */
  "GET /api/v3/users/{user}/notifications": { path: { user: string }; answer: V3ApiNotifications };
  /** Replaces a person's choices of notices. */
  "PUT /api/v3/users/{user}/notifications": { path: { user: string }; body: V3ApiNotificationsChange; answer: V3ApiNotifications };
  /** Requests a test message to a person. */
  "POST /api/v3/users/{user}/notifications/test": { path: { user: string }; answer: V3ApiNotifications };
  /** Sets a password. */
  "PUT /api/v3/users/{user}/password": { path: { user: string }; body: V3ApiPasswordChange; answer: Record<string, unknown> };
  /** Returns the server's name and version. */
  "GET /api/v3/version": { answer: V3ApiVersion };
  /** Lists the virtual clusters that you may use, and their usage. */
  "GET /api/v3/virtual-clusters": { answer: V3ApiVirtualClusters };
  /** Changes virtual clusters in the stored configuration, or returns the effect of a change. */
  "PATCH /api/v3/virtual-clusters": { body: VcChangeSet; answer: VcOutcome };
  /** Returns the GPUs and the queue of a virtual cluster over time, with sentences that explain the figures. */
  "GET /api/v3/virtual-clusters/{vc}/metrics": { path: { vc: string }; query: { since?: string; until?: string; points?: number }; answer: MetricsReport };
  /** Returns the caller, and the permissions of the token. */
  "GET /api/v3/whoami": { answer: V3ApiWhoAmI };
}

export interface V3ApiActions {
  items: V3ApiAction[] | null;
  next?: string;
}

export interface V3ApiNewAction {
  dryRun?: boolean;
  gpu?: number;
  graceSeconds?: number;
  job?: string;
  machine?: string;
  notAfter?: string;
  operation: string;
  reason: string;
}

export interface V3ApiAction {
  acts?: string;
  by: AlerthandlerV1Requester;
  canceled?: string;
  created: string;
  dryRun?: boolean;
  ended?: string;
  gpu?: number;
  graceSeconds?: number;
  job?: string;
  machine?: string;
  message?: string;
  name: string;
  notAfter: string;
  noticed?: string;
  operation: string;
  phase: string;
  reason: string;
  results?: AlerthandlerV1Result[];
  started?: string;
}

export interface V3ApiCancellation {
  reason: string;
}

export interface V3ApiAlerts {
  items: V3ApiAlert[] | null;
}

export interface AuditPage {
  items: AuditRecord[] | null;
  next?: string;
}

export interface V3ApiFirst {
  name: string;
}

export interface V3ApiGPUs {
  items: SchedulerApiGPU[] | null;
  nodes: string[] | null;
}

export interface V3ApiGroups {
  items: V3ApiGroup[] | null;
}

export interface V3ApiGroup {
  administrator?: boolean;
  allVirtualClusters?: boolean;
  created?: string;
  description?: string;
  extension?: unknown;
  external?: PeopleV1ExternalGroup[];
  members: string[] | null;
  name: string;
  pages?: string[];
  storages?: string[];
  virtualClusters?: PeopleV1VCGrant[];
}

export interface V3ApiGroupChange {
  spec: PeopleV1GroupSpec;
  was?: PeopleV1GroupSpec;
}

export interface V3ApiImages {
  items: string[] | null;
}

export interface ListingPage {
  items: ListingRow[] | null;
  next?: string;
  note?: string;
}

export interface V3ApiSubmission {
  after?: string[];
  clonedFrom?: V3ApiClonedFrom;
  code?: JobCode;
  dryRun?: boolean;
  file?: string;
  group?: string;
  planned?: string[];
  replace?: boolean;
  skipEnded?: boolean;
  text: string;
}

export interface V3SubmitOut {
  codeUrl?: string;
  findings?: StrictyamlFindings;
  framework: string;
  gpus: number;
  name: string;
  outcome?: string;
  outlook?: JobOutlook;
  tasks: number;
  user: string;
  virtualCluster: string;
}

export interface V3ApiChanged {
  before: string;
}

export interface V3ApiForgotten {
  jobs: number;
}

export interface JobDetail {
  accountableRetries?: number;
  after?: JobV1After[];
  attempts: JobApiAttempt[] | null;
  avoidedNodes?: JobV1AvoidedNode[];
  clonedFrom?: JobV1ClonedFrom;
  code?: number;
  completed?: string;
  config?: string;
  deleted?: boolean;
  executionType?: string;
  framework: string;
  frameworkState?: string;
  gpus: number;
  live: boolean;
  memoryMB?: number;
  message?: string;
  milliCPU?: number;
  name: string;
  note?: string;
  phrase?: string;
  position?: number;
  priority?: string;
  retries: number;
  retryAt?: string;
  roles: JobRole[] | null;
  started?: string;
  state: string;
  submitted: string;
  tags?: string[];
  takesGpus?: number;
  taskList: JobTask[] | null;
  tasks: number;
  uid: string;
  unplaced?: boolean;
  user: string;
  virtualCluster: string;
}

export interface V3ApiAllowed {
  operations: string[] | null;
}

export interface JobJob {
  config?: string;
  live: boolean;
  name: string;
  object: string;
  roles: JobRole[] | null;
  state: string;
  stopAsked?: boolean;
  uid?: string;
  user: string;
}

export interface V3ApiEvents {
  items: JobApiEvent[] | null;
  note?: string;
}

export interface V3ApiFrame {
  back?: boolean;
  detail?: JobDetail;
  end?: boolean;
  error?: V3ApiError;
  line?: LogsLine;
  note?: string;
  problem?: string;
}

export interface V3ApiFreeName {
  name: string;
}

export interface MetricsReport {
  charts: MetricsChart[] | null;
  findings?: MetricsFinding[];
  note?: string;
  since: string;
  step: number;
  until: string;
}

export interface V3ApiScale {
  role?: string;
  tasks: number;
}

export interface V3ApiScaled {
  before: number;
  findings?: StrictyamlFindings;
}

export interface V3ApiTags {
  tags: string[] | null;
}

export interface V3ApiTargets {
  items: JobTarget[] | null;
}

export interface V3ApiTicket {
  expiresIn: number;
  protocol: string;
}

export interface V3ApiFiles {
  entries: V3ApiFileEntry[] | null;
  kind: string;
  modified?: string;
  more?: boolean;
  path: string;
  size?: number;
}

export interface LogsWindow {
  after?: boolean;
  attempt: number;
  before?: boolean;
  bytes: number;
  dropped?: number;
  end: string;
  from: string;
  gaps?: number;
  limit: number;
  lines: LogsPlacedLine[] | null;
  live?: boolean;
  start: string;
  task: string;
  taskAttempt: number;
  to: string;
}

export interface LogsMatches {
  after?: boolean;
  attempt: number;
  bytes: number;
  dropped?: number;
  end: string;
  from: string;
  gaps?: number;
  items: LogsMatch[] | null;
  limit: number;
  live?: boolean;
  searched: number;
  start: string;
  task: string;
  taskAttempt: number;
  to: string;
}

export interface V3ApiTop {
  items: UsageTask[] | null;
  problems?: string[];
}

export interface JobWhy {
  facts?: JobFact[];
  job: string;
  log?: string[];
  remedy?: string[];
  sentence: string;
  state: string;
}

export interface JobOffer {
  skus?: Record<string, RenderSKU>;
  takesCode: boolean;
}

export interface JobWaitingList {
  items: JobWaitingGang[] | null;
  total: number;
}

export interface ReportReport {
  notes?: string[];
  people: ReportRow[] | null;
  since: string;
  total: ReportRow;
  until: string;
  virtualClusters: ReportRow[] | null;
}

export interface StateReport {
  items: StateStatus[] | null;
  notes?: StateNote[];
}

export interface PagesSession {
  name: string;
  pages: PagesPageLink[] | null;
}

export interface PagesBegun {
  name: string;
  to: string;
}

export interface V3ApiSignInMethods {
  at?: string;
  issuers: V3ApiIssuer[] | null;
  password: boolean;
}

export interface V3ApiWaiting {
  address: string;
  approval?: string;
  began: string;
  client: string;
  name?: string;
}

export interface V3LetInBody {
  allow: boolean;
  code: string;
  session: string;
}

export interface V3ApiGoal {
  device?: string;
  program?: V3ApiProgram;
  to?: string;
}

export interface V3ApiGo {
  to: string;
}

export interface V3ApiArrival {
  to?: string;
  waiting?: V3ApiWaiting;
}

export interface V3ApiSilences {
  items: V3ApiSilence[] | null;
}

export interface V3ApiNewSilence {
  matchers: V3ApiMatcher[] | null;
  reason: string;
  seconds: number;
}

export interface V3ApiSilence {
  alerts: number;
  by: string;
  ends: string;
  id: string;
  matchers: V3ApiMatcher[] | null;
  reason: string;
  starts: string;
  state: string;
}

export interface StatusCluster {
  alerts: StatusAlert[] | null;
  at: string;
  counts: StatusCounts;
  events?: StatusEvent[];
  jobs: StatusJob[] | null;
  kubernetes?: string;
  machines: StatusMachine[] | null;
  name: string;
  server: string;
  services: StatusService[] | null;
  sources: StatusSource[] | null;
  verdict: StatusVerdict;
  virtualClusters: StatusVirtualCluster[] | null;
}

export interface StatusDelta {
  alerts?: StatusAlert[];
  at: string;
  counts?: StatusCounts;
  events?: StatusEvent[];
  goneJobs?: string[];
  goneMachines?: string[];
  jobs?: StatusJob[];
  machines?: StatusMachine[];
  services?: StatusService[];
  sources?: StatusSource[];
  verdict?: StatusVerdict;
  virtualClusters?: StatusVirtualCluster[];
}

export interface V3ApiStorages {
  items: V3ApiStorage[] | null;
}

export interface V3ApiTemplates {
  items: V3ApiTemplate[] | null;
}

export interface PeopleV1TemplateSpec {
  author: string;
  categories?: string[];
  dataType?: string;
  dataUrl?: string;
  description?: string;
  groups?: string[];
  job: string;
  name: string;
  public?: boolean;
  summary?: string;
  tags?: string[];
  type: string;
}

export interface V3ApiTemplate {
  author: string;
  builtIn: boolean;
  categories?: string[];
  created?: string;
  dataType?: string;
  dataUrl?: string;
  description?: string;
  groups?: string[];
  id: string;
  job: string;
  name: string;
  public?: boolean;
  starred: boolean;
  stars: number;
  summary?: string;
  tags?: string[];
  type: string;
  updated?: string;
  uses: number;
  version: number;
}

export interface V3ApiTemplateChange {
  spec: PeopleV1TemplateSpec;
  version: number;
}

export interface V3ApiKeyRotation {
  revoke?: boolean;
}

export interface V3ApiTokenRecords {
  items: V3ApiTokenRecord[] | null;
}

export interface V3ApiNewToken {
  label?: string;
  scopes?: string[];
  seconds?: number;
}

export interface V3ApiIssuedToken {
  record: V3ApiTokenRecord;
  token: string;
}

export interface JobUsage {
  items: JobUsageItem[] | null;
  since: string;
  total: JobApiGPUTime;
  until: string;
}

export interface V3ApiUsers {
  items: V3ApiUser[] | null;
}

export interface V3ApiNewUser {
  check?: boolean;
  displayName?: string;
  email?: string;
  groups: string[] | null;
  identities?: PeopleV1Identity[];
  name: string;
  password?: string;
  takeOverHistory?: boolean;
}

export interface V3ApiUser {
  administrator: boolean;
  allVirtualClusters: boolean;
  created?: string;
  disabled: boolean;
  displayName?: string;
  email?: string;
  groups: string[] | null;
  identities?: PeopleV1Identity[];
  lastSignIn?: string;
  name: string;
  pages: string[] | null;
  spec?: PeopleV1UserSpec;
  sshKeys?: PeopleV1SSHKey[];
  storages: string[] | null;
  virtualClusters: PeopleV1VCGrant[] | null;
}

export interface V3ApiUserChange {
  spec: PeopleV1UserSpec;
  was: PeopleV1UserSpec;
}

export interface V3ApiNotifications {
  address?: string;
  chosen: boolean;
  events: string[] | null;
  mail: boolean;
  mailTest?: string;
  problems?: string[];
  required: string[] | null;
  test?: string;
  user: string;
  waitMinutes: number;
  webhook?: string;
  webhookTest?: string;
  weeklyReport: boolean;
}

export interface V3ApiNotificationsChange {
  events: string[] | null;
  mail: boolean;
  waitMinutes?: number;
  webhook?: V3ApiOwnWebhook;
  weeklyReport?: boolean;
}

export interface V3ApiPasswordChange {
  oldPassword?: string;
  password: string;
}

export interface V3ApiVersion {
  oldestClient: string;
  version: string;
}

export interface V3ApiVirtualClusters {
  deleted?: SchedulerApiVirtualCluster[];
  generation: number;
  items: SchedulerApiVirtualCluster[] | null;
  note?: string;
  problem?: string;
}

export interface VcChangeSet {
  changes: VcRequest[] | null;
  dryRun?: boolean;
  force?: boolean;
  message?: string;
  revision?: number;
}

export interface VcOutcome {
  applied: boolean;
  base: number;
  changed: boolean;
  clusterId: string;
  diff?: string;
  dryRun: boolean;
  effect?: SchedulerApiValidation;
  generation?: number;
  installed: boolean;
  note?: string;
  pending?: boolean;
  problem?: string;
  refused?: string;
  remedy?: string;
  revision?: number;
  warnings?: StrictyamlFindings;
}

export interface V3ApiWhoAmI {
  defaultVirtualCluster?: string;
  displayName?: string;
  email?: string;
  grants: V3ApiGrants;
  groups: string[] | null;
  name: string;
  token: V3ApiToken;
}

export interface WireError {
  code: string;
  findings?: StrictyamlFindings;
  message: string;
  remedy?: string;
  request?: string;
}

export interface AlerthandlerV1Requester {
  kind: string;
  name: string;
  uid?: string;
}

export interface AlerthandlerV1Result {
  done: boolean;
  message?: string;
  target: string;
}

export interface V3ApiAlert {
  labels: Record<string, string> | null;
  name: string;
  runbook?: string;
  severity?: string;
  silences?: string[];
  since: string;
  summary?: string;
}

export interface AuditRecord {
  actor?: string;
  actorUID?: string;
  address?: string;
  detail?: Record<string, string>;
  id: string;
  kind: string;
  object?: string;
  outcome: string;
  owner?: string;
  reason?: string;
  request?: string;
  status?: number;
  time: string;
  token?: string;
  vc?: string;
  verb: string;
}

export interface SchedulerApiGPU {
  gpu: number;
  instances?: string[];
  mig?: string;
  model?: string;
  node: string;
  reason?: string;
  state: string;
}

export interface PeopleV1ExternalGroup {
  name: string;
  provider: string;
}

export interface PeopleV1VCGrant {
  hostNetwork?: boolean;
  maxPriority?: string;
  name: string;
  seeJobs?: boolean;
}

export interface PeopleV1GroupSpec {
  administrator?: boolean;
  allVirtualClusters?: boolean;
  description?: string;
  extension?: unknown;
  external?: PeopleV1ExternalGroup[];
  name: string;
  pages?: string[];
  storages?: string[];
  virtualClusters?: PeopleV1VCGrant[];
}

export interface ListingRow {
  accountableRetries?: number;
  code?: number;
  completed?: string;
  deleted?: boolean;
  executionType?: string;
  framework: string;
  frameworkState?: string;
  gpus: number;
  live: boolean;
  memoryMB?: number;
  milliCPU?: number;
  name: string;
  phrase?: string;
  position?: number;
  priority?: string;
  retries: number;
  retryAt?: string;
  roles?: number;
  started?: string;
  state: string;
  submitted: string;
  tags?: string[];
  takesGpus?: number;
  tasks: number;
  uid: string;
  unplaced?: boolean;
  user: string;
  virtualCluster: string;
}

export interface V3ApiClonedFrom {
  job: string;
  uid?: string;
}

export interface JobCode {
  sha256: string;
  size: number;
}

export type StrictyamlFindings = StrictyamlFinding[];

export interface JobOutlook {
  after?: string[];
  cost?: string;
  gpuHours?: number;
  gpus: number;
  largest?: CellSmaller;
  machineCount?: number;
  machines?: string[];
  position?: number;
  preempted?: number;
  queueLength?: number;
  reason?: string;
  sentence: string;
  startingTasks?: number;
  verdict: string;
}

export interface JobV1After {
  ended?: boolean;
  framework: string;
  job: string;
  uid: string;
}

export interface JobApiAttempt {
  completed?: string;
  completion?: JobV1FrameworkAttemptCompletionStatus;
  id: number;
  run?: string;
  started: string;
  tasks: JobApiTaskAttempt[] | null;
}

export interface JobV1AvoidedNode {
  failures: number;
  last: unknown;
  name: string;
}

export interface JobV1ClonedFrom {
  name?: string;
  submitted?: string;
  uid?: string;
  user?: string;
  virtualCluster?: string;
}

export interface JobRole {
  image?: string;
  minFailed?: number;
  minSucceeded?: number;
  name: string;
  object: string;
  tasks: number;
}

export interface JobTask {
  completed?: string;
  completion?: JobV1TaskAttemptCompletionStatus;
  hasLog?: boolean;
  id: number;
  index: number;
  ip?: string;
  node?: string;
  phase: string;
  pod: string;
  podUID?: string;
  retries?: number;
  retryAt?: string;
  role: string;
  roleObject: string;
  run?: string;
  started: string;
  state: string;
}

export interface JobApiEvent {
  count: number;
  message: string;
  object: string;
  reason: string;
  source?: string;
  time: string;
  type: string;
  uid: string;
}

export interface V3ApiError {
  code: string;
  findings?: StrictyamlFindings;
  message: string;
  remedy?: string;
  request?: string;
}

export interface LogsLine {
  single?: boolean;
  stamp?: string;
  task: string;
  text: string | null;
}

export interface MetricsChart {
  folded?: number;
  name: string;
  series: MetricsSeries[] | null;
  title: string;
  unit?: string;
}

export interface MetricsFinding {
  kind: string;
  text: string;
}

export interface JobTarget {
  container: string;
  index: number;
  namespace: string;
  node: string;
  ownRuntime: boolean;
  pod: string;
  ports?: Record<string, number[]>;
  program: string;
  role: string;
  task: string;
  uid: string;
}

export interface V3ApiFileEntry {
  kind: string;
  link?: string;
  modified?: string;
  name: string;
  size?: number;
}

export interface LogsPlacedLine {
  at: string;
  bytes?: number;
  continued?: boolean;
  stamp?: string;
  text: string | null;
}

export interface LogsMatch {
  at: string;
  from: number;
  stamp?: string;
  text: string | null;
  to: number;
}

export interface UsageTask {
  cpu: number | null;
  cpuLimit?: number;
  gpuIndices: string[] | null;
  gpuMemoryBytes: number | null;
  gpuMemorySizeBytes: number | null;
  gpuPowerWatts: number | null;
  gpuUtilization: number | null;
  gpus: number;
  memoryBytes: number | null;
  memoryLimitBytes?: number;
  node: string;
  pod: string;
  shareOfGPUs?: number;
  task: string;
}

export interface JobFact {
  text: string;
  what: string;
}

export interface RenderSKU {
  GPU: number;
  MemoryMB: number;
  MilliCPU: number;
  NoRDMA: boolean;
  PerNode: number;
}

export interface JobWaitingGang {
  cpuCells?: number;
  gpus: number;
  group: string;
  holdsFree?: boolean;
  job: string;
  memoryMB?: number;
  milliCPU?: number;
  orShareOfGPUs?: number;
  pods: number;
  position: number;
  positionInVC: number;
  priority: number;
  reason?: string;
  shareOfGPUs?: number;
  shareReason?: string;
  since: string;
  state: string;
  user?: string;
  vc: string;
}

export interface ReportRow {
  failedSeconds: number;
  guaranteedSeconds: number;
  name?: string;
  opportunisticSeconds: number;
  preemptedSeconds: number;
  use?: ReportUse;
  waits?: ReportWaits;
}

export interface StateStatus {
  chart?: string;
  configuration?: string;
  hint?: string;
  name: string;
  namespace: string;
  paictl?: string;
  pods: number;
  problems?: ReadyProblem[];
  readyPods: number;
  revision?: number;
  state: string;
  updated?: string;
}

export interface StateNote {
  message: string;
  remedy?: string;
}

export interface PagesPageLink {
  name: string;
  url: string;
}

export interface V3ApiIssuer {
  name: string;
  title: string;
}

export interface V3ApiProgram {
  client_id?: string;
  code_challenge: string;
  redirect_uri: string;
  state: string;
}

export interface V3ApiMatcher {
  label: string;
  not?: boolean;
  regex?: boolean;
  value: string;
}

export interface StatusAlert {
  labels?: Record<string, string>;
  name: string;
  runbook?: string;
  severity: string;
  silenced?: boolean;
  since: string;
  summary: string;
}

export interface StatusCounts {
  Alerts: number;
  Failed: number;
  GPUs: number;
  GPUsSick: number;
  GPUsUsed: number;
  Machines: number;
  MachinesReady: number;
  Running: number;
  Services: number;
  ServicesReady: number;
  Waiting: number;
}

export interface StatusEvent {
  at: string;
  count: number;
  job?: string;
  message: string;
  namespace?: string;
  object: string;
  reason: string;
  type: string;
}

export interface StatusJob {
  accountableRetries?: number;
  code?: number;
  completed?: string;
  deleted?: boolean;
  executionType?: string;
  framework: string;
  frameworkState?: string;
  gpus: number;
  live: boolean;
  memoryMB?: number;
  milliCPU?: number;
  name: string;
  nodes?: string[];
  phrase?: string;
  position?: number;
  priority?: string;
  retries: number;
  retryAt?: string;
  roles?: number;
  started?: string;
  state: string;
  submitted: string;
  tags?: string[];
  takesGpus?: number;
  tasks: number;
  uid: string;
  unplaced?: boolean;
  user: string;
  virtualCluster: string;
  why?: string;
}

export interface StatusMachine {
  address?: string;
  certificatesExpire?: string;
  cordonReason?: string;
  cordoned?: boolean;
  cordonedBy?: string;
  cpu: StatusAmount;
  driver?: string;
  gpus?: StatusGPU[];
  hint?: string;
  kernel?: string;
  kubelet?: string;
  memory: StatusAmount;
  message?: string;
  name: string;
  os?: string;
  pods: number;
  pressure?: string[];
  roles?: string[];
  runtime?: string;
  since?: string;
  sku?: string;
  state: string;
}

export interface StatusService {
  chart?: string;
  configuration?: string;
  hint?: string;
  name: string;
  namespace: string;
  paictl?: string;
  pods: number;
  problems?: ReadyProblem[];
  readyPods: number;
  revision?: number;
  state: string;
  updated?: string;
}

export interface StatusSource {
  hint?: string;
  message?: string;
  name: string;
  refused?: boolean;
  since?: string;
  state: string;
  updated?: string;
}

export interface StatusVerdict {
  level: string;
  problems?: StatusProblem[];
}

export interface StatusVirtualCluster {
  bad: number;
  cpuCells?: CellCPUStats;
  deleted?: boolean;
  fragmentation: number;
  free: number;
  freeByLevel?: CellLevelCount[];
  guaranteed: number;
  leaves?: CellLeafStats[];
  name: string;
  opportunistic: number;
  pinnedCells?: string[];
  policy: string;
  queue?: JobWaitingGang[];
  quota?: SchedulerApiQuota;
  used: number;
  virtualCells?: SchedulerApiCells[];
  waitingGangs: number;
  waitingPods: number;
}

export interface V3ApiStorage {
  capacity?: string;
  groups: string[] | null;
  kind: string;
  name: string;
  perUser: boolean;
  readOnly: boolean;
  volume: string;
}

export interface V3ApiTokenRecord {
  address?: string;
  client?: string;
  created: string;
  expires?: string;
  id: string;
  kind: string;
  label?: string;
  scopes?: string[];
  used?: string;
  user: string;
}

export interface JobUsageItem {
  failedSeconds: number;
  guaranteedSeconds: number;
  opportunisticSeconds: number;
  period?: string;
  preemptedSeconds: number;
  shareOfGuarantee?: number;
  type?: string;
  user?: string;
  virtualCluster?: string;
}

export interface JobApiGPUTime {
  failedSeconds: number;
  guaranteedSeconds: number;
  opportunisticSeconds: number;
  preemptedSeconds: number;
}

export interface PeopleV1Identity {
  provider: string;
  subject: string;
}

export interface PeopleV1UserSpec {
  defaultVirtualCluster?: string;
  disabled?: boolean;
  displayName?: string;
  email?: string;
  groups?: string[];
  identities?: PeopleV1Identity[];
  name: string;
  notifications?: PeopleV1Notifications;
  removed?: boolean;
  sshKeys?: PeopleV1SSHKey[];
}

export interface PeopleV1SSHKey {
  title?: string;
  value: string;
}

export interface V3ApiOwnWebhook {
  signingSecret?: string;
  type?: string;
  url?: string;
}

export interface SchedulerApiVirtualCluster {
  bad: number;
  cpuCells?: CellCPUStats;
  fragmentation: number;
  free: number;
  freeByLevel?: CellLevelCount[];
  guaranteed: number;
  leaves?: CellLeafStats[];
  name: string;
  opportunistic: number;
  pinnedCells?: string[];
  policy: string;
  quota?: SchedulerApiQuota;
  used: number;
  virtualCells?: SchedulerApiCells[];
  waitingGangs: number;
  waitingPods: number;
}

export interface VcRequest {
  cells?: VcCells[];
  define?: VcDefinition;
  delete?: boolean;
  groups?: Record<string, number>;
  name: string;
  perGroup?: number;
  perUser?: number;
  pin?: string[];
  policy?: string;
  takeFrom?: string;
  unpin?: string[];
  users?: Record<string, number>;
}

export interface SchedulerApiValidation {
  changes?: SchedulerApiChange[];
  problems?: SchedulerApiProblem[];
  valid: boolean;
  virtualClusters?: SchedulerApiChangedVirtualCluster[];
}

export interface V3ApiGrants {
  administrator?: boolean;
  allVirtualClusters?: boolean;
  pages?: string[];
  storages: string[] | null;
  virtualClusters: V3ApiVC[] | null;
}

export interface V3ApiToken {
  application?: boolean;
  expires?: string;
  id: string;
  scopes?: string[];
}

export interface StrictyamlFinding {
  column?: number;
  field?: string;
  file: string;
  line?: number;
  message: string;
  remedy?: string;
  rule: string;
  severity: string;
}

export interface CellSmaller {
  cpuCellsPerPod?: number;
  gpusPerPod: number;
  pods: number;
}

export interface JobV1FrameworkAttemptCompletionStatus {
  code: number;
  diagnostics: string;
  phrase: string;
  trigger?: JobV1CompletionTrigger;
  type: JobV1CompletionType;
}

export interface JobApiTaskAttempt {
  completed?: string;
  completion?: JobV1TaskAttemptCompletionStatus;
  hasLog?: boolean;
  id: number;
  index: number;
  node?: string;
  pod: string;
  podUID?: string;
  role: string;
  roleObject: string;
  run?: string;
  started: string;
  state: string;
}

export interface JobV1TaskAttemptCompletionStatus {
  code: number;
  diagnostics: string;
  phrase: string;
  pod?: JobV1PodCompletionStatus;
  type: JobV1CompletionType;
}

export interface MetricsSeries {
  gpu?: string;
  limit?: number;
  name: string;
  node?: string;
  task?: string;
  values: (number | null)[] | null;
}

export interface ReportUse {
  idleSeconds: number;
  measuredSeconds: number;
  usedSeconds: number;
}

export interface ReportWaits {
  gpuSeconds: number;
  jobs: number;
  longestSeconds: number;
}

export interface ReadyProblem {
  final?: boolean;
  hint?: string;
  log?: string[];
  message: string;
  object: string;
  reason: string;
}

export interface StatusAmount {
  total: number;
  used: number;
}

export interface StatusGPU {
  forPods?: boolean;
  health: string;
  index: number;
  memory?: number;
  model?: string;
  owner?: StatusOwner;
  reason?: string;
  simulated?: boolean;
  use?: StatusUse;
  uuid?: string;
}

export interface StatusProblem {
  hint?: string;
  kind: string;
  level: string;
  message: string;
  name: string;
  others?: number;
}

export interface CellCPUStats {
  bad: number;
  free: number;
  guaranteed: number;
  opportunistic: number;
  used: number;
}

export interface CellLevelCount {
  cellType: string;
  count: number;
  cpuCells?: number;
  gpus: number;
}

export interface CellLeafStats {
  bad: number;
  guaranteed: number;
  leafType: string;
  used: number;
}

export interface SchedulerApiQuota {
  groups?: Record<string, number>;
  perGroup?: number;
  perUser?: number;
  users?: Record<string, number>;
}

export interface SchedulerApiCells {
  cellNumber: number;
  cellType: string;
}

export interface PeopleV1Notifications {
  events?: string[];
  from?: Record<string, unknown>;
  noMail?: boolean;
  test?: unknown;
  waitMinutes?: number;
  webhook?: string;
  weeklyReport?: boolean;
}

export interface VcCells {
  cellNumber: number;
  cellType: string;
}

export interface VcDefinition {
  pinnedCells?: VcPinned[];
  policy?: string;
  quota?: VcQuota;
  virtualCells?: VcCells[];
}

export interface SchedulerApiChange {
  cpuCells?: number;
  effect: string;
  gpus: number;
  group: string;
  pods?: string[];
  reason?: string;
  user?: string;
  vc: string;
}

export interface SchedulerApiProblem {
  column?: number;
  line?: number;
  message: string;
  path?: string;
  remedy?: string;
  severity: string;
}

export interface SchedulerApiChangedVirtualCluster {
  after?: SchedulerApiVirtualCluster;
  before?: SchedulerApiVirtualCluster;
  name: string;
}

export interface V3ApiVC {
  hostNetwork?: boolean;
  maxPriority?: string;
  name: string;
  seeJobs?: boolean;
}

export interface JobV1CompletionTrigger {
  message: string;
  taskIndex?: number;
  taskRoleName: string;
}

export interface JobV1CompletionType {
  attributes: string[] | null;
  name: string;
}

export interface JobV1PodCompletionStatus {
  containers?: JobV1ContainerCompletionStatus[];
  message?: string;
  reason?: string;
}

export interface StatusOwner {
  job?: string;
  jobUid?: string;
  opportunistic?: boolean;
  pod: string;
  task?: string;
  user?: string;
  virtualCluster?: string;
}

export interface StatusUse {
  at: string;
  memoryUsed: number;
  power?: number;
  temperature?: number;
  utilisation: number;
}

export interface VcPinned {
  pinnedCellId: string;
}

export interface VcQuota {
  groups?: Record<string, number>;
  perGroup?: number;
  perUser?: number;
  users?: Record<string, number>;
}

export interface JobV1ContainerCompletionStatus {
  code: number;
  message?: string;
  name: string;
  reason?: string;
  signal?: number;
}
