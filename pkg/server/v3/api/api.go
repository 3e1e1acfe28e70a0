// Package api has the types of /api/v3, which paictl uses after "paictl login".
// In: nothing. Out: the types of requests and responses. Responses about jobs are the types of pkg/job as "-o json" prints them.
//
//	GET    /api/v3/version                          Version
//	GET    /api/v3/whoami                           WhoAmI
//	POST   /api/v3/first                            {code, username, password} → First
//	POST   /oauth/token                             Tokens; form: grant_type=password&username=&password=, grant_type=refresh_token&refresh_token=,
//	                                                grant_type=authorization_code&code=&code_verifier=&redirect_uri=, or the grant of RFC 8628 with device_code=
//	POST   /oauth/device_authorization              Device; form: client_id=
//	GET    /oauth/authorize?response_type=code&redirect_uri=&state=&code_challenge=&code_challenge_method=S256   page for a browser
//	GET    /device?user_code=                       page for a browser
//	GET    /api/v3/signin                           SignInMethods
//	POST   /api/v3/signin/oidc/{issuer}             Goal → Go; then /api/v3/signin/oidc/{issuer}/return
//	POST   /api/v3/signin/password                  {username, password, goal} → Arrival, for programs
//	POST   /api/v3/signin/approval                  {approval, allow} → {}
//	GET    /api/v3/signin/device?code=              Waiting
//	POST   /api/v3/signin/device                    LetIn → {}
//	POST   /oauth/revoke                            form: token=; 200 with {}
//	GET    /api/v3/jobs?user=&vc=&keyword=&name=&state=&since=&limit=&cursor=   job.Page
//	POST   /api/v3/jobs?check=true&outlook=         Submission → Checked
//	POST   /api/v3/jobs                             Submission → Submitted; header Idempotency-Key
//	GET    /api/v3/jobs/watch?user=&vc=&keyword=&name=&state=&since=&limit=     server-sent events; see watch.go. Header Last-Event-ID
//	GET    /api/v3/jobs/{user}/{name}               job.Detail
//	GET    /api/v3/jobs/{user}/{name}/why           job.Why
//	GET    /api/v3/jobs/{user}/{name}/events        Events
//	GET    /api/v3/jobs/{user}/{name}/brief         job.Job
//	GET    /api/v3/jobs/{user}/{name}/parent        job.Job: the job that it was cloned from
//	GET    /api/v3/jobs/{user}/{name}/follow        lines of Frame with Detail or Problem
//	GET    /api/v3/jobs/{user}/{name}/logs?role=&task=&attempt=&previous=&follow=&since=&tail=&match=   lines of Frame with Line, Note or Problem
//	GET    /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log?attempt=&taskAttempt=&previous=&at=&before=&lines=&longest=&wait=   logs.Window
//	GET    /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/matches?…&from=&match=&limit=   logs.Matches
//	GET    /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/log/text?…&of=&times=               the whole log, as a file
//	GET    /api/v3/jobs/{user}/{name}/top           Top
//	GET    /api/v3/jobs/{user}/{name}/freename      FreeName
//	GET    /api/v3/jobs/{user}/{name}/targets       Targets
//	GET, POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec?command=&stdin=&stdout=&stderr=&tty=   upgrade, as of a pod
//	GET, POST /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/portforward                                 upgrade, as of a pod
//	POST   /api/v3/jobs/{user}/{name}/tasks/{role}/{index}/exec/ticket, …/portforward/ticket               Ticket, for a browser's WebSocket
//	GET    /api/v3/proxied/{service}/ticket?browser=&to=   redirects a browser to a page of another service, with a ticket
//	GET    /api/v3/templates?author=&name=&keyword= Templates, without description and job file
//	POST   /api/v3/templates                        v1.TemplateSpec → Template
//	GET    /api/v3/templates/{template}             Template, by its id
//	PUT    /api/v3/templates/{template}             TemplateChange → Template
//	DELETE /api/v3/templates/{template}             {}
//	PUT, DELETE /api/v3/templates/{template}/star   Template
//	POST   /api/v3/templates/{template}/use         {}; counts a job that was submitted from it
//	HEAD   /api/v3/code/{sha256}                    200 if the caller has sent it, otherwise 404
//	PUT    /api/v3/code/{sha256}                    a gzipped tar archive; 201
//	GET    /api/v3/queue?vc=&limit=                 job.WaitingList
//	GET    /api/v3/usage?user=&vc=&type=&since=&until=&by=   job.Usage
//	GET    /api/v3/report?user=&vc=&since=&until=   report.Report
//	GET    /api/v3/virtual-clusters                 VirtualClusters of the scheduler's API
//	GET    /api/v3/images                           Images
//	GET    /api/v3/offer                            job.Offer
//	POST   /api/v3/jobs/{user}/{name}/stop          Changed
//	POST   /api/v3/jobs/{user}/{name}/retry         Changed
//	POST   /api/v3/jobs/{user}/{name}/scale         Scale → Scaled
//	DELETE /api/v3/jobs/{user}/{name}               Changed; waits until its name is free
//	DELETE /api/v3/jobs/{user}/{name}?history=true  Forgotten
//	PUT    /api/v3/jobs/{user}/{name}/tags          Tags → Tags: those that the job has then
//	DELETE /api/v3/jobs/{user}/{name}/tags          Tags → Tags
//	GET    /api/v3/users, /api/v3/users/{user}      Users, User
//	POST   /api/v3/users                            NewUser → User
//	PUT    /api/v3/users/{user}                     UserChange → User
//	PUT    /api/v3/users/{user}/password            PasswordChange → {}
//	DELETE /api/v3/users/{user}                     {}
//	GET, DELETE /api/v3/users/{user}/notifications  Notifications
//	PUT    /api/v3/users/{user}/notifications       NotificationsChange → Notifications
//	POST   /api/v3/users/{user}/notifications/test  Notifications
//	GET    /api/v3/groups, /api/v3/groups/{group}   Groups, Group
//	PUT    /api/v3/groups/{group}                   GroupChange → Group
//	DELETE /api/v3/groups/{group}                   {}
//	GET    /api/v3/tokens?user=                     TokenRecords
//	POST   /api/v3/tokens                           NewToken → IssuedToken
//	DELETE /api/v3/tokens/{token}                   {}; by id, token or handle
//	GET    /api/v3/actions?phase=&machine=&job=&limit=&cursor=   Actions, for administrators, as all of these
//	POST   /api/v3/actions                          NewAction → Action
//	GET    /api/v3/actions/{action}                 Action
//	POST   /api/v3/actions/{action}/cancel          Cancellation → Action
//	GET    /api/v3/audit?actor=&object=&owner=&kind=&verb=&outcome=&since=&until=&cursor=&limit=   audit.Page
//
// Clients send "Authorization: Bearer TOKEN". The response to a failed request is an Error, or an OAuthError from /oauth/token.
package api

import (
	"time"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/job/usage"
	schedulerapi "github.com/openpai/paictl/pkg/scheduler/api"
)

// Paths.
const (
	Prefix        = "/api/v3"
	TokenPath     = "/oauth/token"
	RevokePath    = "/oauth/revoke"
	GrantRefresh  = "refresh_token"
	GrantPassword = "password"
	GrantCode     = "authorization_code"
	GrantDevice   = "urn:ietf:params:oauth:grant-type:device_code"
	// DevicePath begins a sign-in of a program without a browser. ProgramPage and DevicePage are pages for browsers.
	DevicePath  = "/oauth/device_authorization"
	ProgramPage = "/oauth/authorize"
	DevicePage  = "/device"
)

// IdempotencyKey is the header of a submission that is sent again after its response was lost.
const IdempotencyKey = "Idempotency-Key"

// RequestID is the header with the id of a request, which is also in the server's log.
const RequestID = "X-Request-Id"

// Error is the body of the response to a failed request. Its code is one of OpenPAI's codes, such as NoJobError.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Remedy says how the user can repair the error.
	Remedy string `json:"remedy,omitempty"`
	// Findings are the errors in a job file.
	Findings strictyaml.Findings `json:"findings,omitempty"`
	// Request is the id of the request in the server's log.
	Request string `json:"request,omitempty"`
}

// OAuthError is the body of TokenPath's response to a failed request, as RFC 6749 defines it.
type OAuthError struct {
	Error       string `json:"error"` // invalid_grant, invalid_request, unsupported_grant_type, temporarily_unavailable, slow_down
	Description string `json:"error_description,omitempty"`
}

// Version is the version of the server.
type Version struct {
	Version string `json:"version"`
	// OldestClient is the oldest paictl that the server supports.
	OldestClient string `json:"oldestClient"`
}

// Ticket admits a browser to a task, once, for a short time.
type Ticket struct {
	// Protocol must be one of the WebSocket's protocols.
	Protocol  string `json:"protocol"`
	ExpiresIn int    `json:"expiresIn"` // seconds
}

// Tokens are the tokens of a session.
type Tokens struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"` // Bearer
	ExpiresIn    int    `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitempty"`
}

// WhoAmI is the caller, and the rights of the token.
type WhoAmI struct {
	Name        string `json:"name"`
	Email       string `json:"email,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	// DefaultVirtualCluster is the virtual cluster of the caller's jobs whose files don't name one. Without it, such jobs use "default".
	DefaultVirtualCluster string   `json:"defaultVirtualCluster,omitempty"`
	Groups                []string `json:"groups"`
	Grants                Grants   `json:"grants"`
	Token                 Token    `json:"token"`
}

// Grants are the grants of all groups of a person together.
type Grants struct {
	Administrator      bool     `json:"administrator,omitempty"`
	AllVirtualClusters bool     `json:"allVirtualClusters,omitempty"`
	VirtualClusters    []VC     `json:"virtualClusters"`
	Storages           []string `json:"storages"`
	Pages              []string `json:"pages,omitempty"`
}

// VC is a virtual cluster that the person may use.
type VC struct {
	Name string `json:"name"`
	// SeeJobs reports whether the person also sees other people's jobs.
	SeeJobs bool `json:"seeJobs,omitempty"`
	// MaxPriority is the highest priority of the person's jobs.
	MaxPriority string `json:"maxPriority,omitempty"`
	HostNetwork bool   `json:"hostNetwork,omitempty"`
}

// Token describes the token that came with a request.
type Token struct {
	ID          string     `json:"id"`
	Application bool       `json:"application,omitempty"`
	Scopes      []string   `json:"scopes,omitempty"`
	Expires     *time.Time `json:"expires,omitempty"`
}

// Submission is a job file, and how it is submitted. The token identifies the job's owner.
type Submission struct {
	// File is the name of the file in findings.
	File string `json:"file,omitempty"`
	// Text is the job file, as the person wrote it.
	Text string `json:"text"`
	// Group is one of the person's groups, whose quota the job counts against.
	Group string `json:"group,omitempty"`
	// Code is a folder that was uploaded before.
	Code *Code `json:"code,omitempty"`
	// ClonedFrom is the job that this job was cloned from. If it isn't found, the response has a warning, and the job is submitted without
	// ClonedFrom.
	ClonedFrom *ClonedFrom `json:"clonedFrom,omitempty"`
	// DryRun lets the API server check the job without storing it.
	DryRun bool `json:"dryRun,omitempty"`
	// Replace allows the job to replace a finished job of the same name.
	Replace bool `json:"replace,omitempty"`
	// SkipEnded doesn't submit the job if a finished job has its name.
	SkipEnded bool `json:"skipEnded,omitempty"`
	// After are names of jobs to wait for, in addition to the jobs of the file.
	After []string `json:"after,omitempty"`
	// Planned are jobs that would be submitted earlier, which a dry run doesn't find.
	Planned []string `json:"planned,omitempty"`
}

// ClonedFrom names the original of a cloned job.
type ClonedFrom struct {
	// Job is its name: USER/NAME, or NAME for a job of the person.
	Job string `json:"job"`
	// UID distinguishes it from other jobs that had that name; "" means the latest one.
	UID string `json:"uid,omitempty"`
}

// Code is a folder that is sent with the job: its archive's checksum, and its size in bytes.
type Code = job.Code

// Checked is the result of a check of a job file.
type Checked struct {
	Summary
	// Findings are warnings.
	Findings strictyaml.Findings `json:"findings,omitempty"`
	// CodeURL is where tasks fetch code; "" if the cluster doesn't take code.
	CodeURL string `json:"codeUrl,omitempty"`
	// Outlook predicts whether the job would start now, if that was requested.
	Outlook *job.Outlook `json:"outlook,omitempty"`
}

// Summary holds the job's name and the resources that it requests.
type Summary = job.Summary

// Submitted is the result of a submission.
type Submitted struct {
	Summary
	Outcome  job.Outcome         `json:"outcome"`
	Findings strictyaml.Findings `json:"findings,omitempty"`
}

// Events are the events of a job, the latest last. Note names the sources that could not be read.
type Events struct {
	Items []fapi.Event `json:"items"`
	Note  string       `json:"note,omitempty"`
}

// Allowed lists the operations on a job that the caller may use: stop, retry, scale, tag, delete, config, logs, enter.
type Allowed struct {
	Operations []string `json:"operations"`
}

// Changed holds the state of a job before the change.
type Changed struct {
	Before job.Phase `json:"before"`
}

// Scale is the new number of a role's tasks; Role may be empty if the job has one role.
type Scale struct {
	Role  string `json:"role,omitempty"`
	Tasks int    `json:"tasks"`
}

// Scaled holds the previous number of the role's tasks.
type Scaled struct {
	Before int `json:"before"`
	// Findings are warnings about more tasks, as a submission has them.
	Findings strictyaml.Findings `json:"findings,omitempty"`
}

// Tags are words for finding a job.
type Tags struct {
	Tags []string `json:"tags"`
}

// Forgotten is how many jobs of a name were removed from the history.
type Forgotten struct {
	Jobs int `json:"jobs"`
}

// Frame is one line of a stream. An empty one shows that the server is still connected. A complete stream ends with End or Error;
// otherwise the connection was lost.
type Frame struct {
	Detail *job.Detail `json:"detail,omitempty"`
	Line   *logs.Line  `json:"line,omitempty"`
	Note   string      `json:"note,omitempty"`
	// Problem is a temporary error; Back means that it has ended.
	Problem string `json:"problem,omitempty"`
	Back    bool   `json:"back,omitempty"`
	End     bool   `json:"end,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// Top lists the resources that the tasks of a job use; Problems holds errors of machines that don't respond.
type Top struct {
	Items    []usage.Task `json:"items"`
	Problems []string     `json:"problems,omitempty"`
}

// FreeName is a name for a copy of a job.
type FreeName struct {
	Name string `json:"name"`
}

// Targets are running tasks.
type Targets struct {
	Items []*job.Target `json:"items"`
}

// Files is a file of a running task, or a folder with its entries.
type Files struct {
	// Path is absolute.
	Path string `json:"path"`
	// Kind is file, folder or other.
	Kind string `json:"kind"`
	// Size is in bytes; 0 unless it is a file.
	Size     int64       `json:"size,omitempty"`
	Modified *time.Time  `json:"modified,omitempty"`
	Entries  []FileEntry `json:"entries"`
	// More reports whether the folder has further entries.
	More bool `json:"more,omitempty"`
}

// FileEntry is a file or a folder in a folder.
type FileEntry struct {
	Name string `json:"name"`
	// Kind is file, folder or other; for a link it is the kind of its target, or none if the target doesn't exist.
	Kind string `json:"kind"`
	// Size is in bytes; 0 unless it is a file.
	Size     int64      `json:"size,omitempty"`
	Modified *time.Time `json:"modified,omitempty"`
	// Link is the target of a symbolic link.
	Link string `json:"link,omitempty"`
}

// VirtualClusters are the virtual clusters that the caller may use.
type VirtualClusters struct {
	// Note explains why the scheduler doesn't respond. The items then come from the configuration, without their usage.
	Note string `json:"note,omitempty"`
	schedulerapi.VirtualClusters
}

// GPUs are the GPUs of all nodes.
type GPUs struct {
	// Nodes are the names of all nodes, including those whose agents have reported no GPU.
	Nodes []string           `json:"nodes"`
	Items []schedulerapi.GPU `json:"items"`
}

// Images are the images that all machines have.
type Images struct {
	Items []string `json:"items"`
}

// First is the first administrator.
type First struct {
	Name string `json:"name"`
}
