// Package protocol reads job files: OpenPAI's job protocol, version 2.
// In: the text of one file. Out: a Job, checked, with defaults and with all references <% ... %>
// filled in, or findings that name each mistake's line, column and remedy.
package protocol

import (
	"encoding/json"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Limits of a job.
const (
	// MaxBytes is the size of a job file. The stored parts of it must fit into one object of Kubernetes.
	MaxBytes = 200 << 10
	// MaxTasks is the number of tasks of one role, and of one job.
	MaxTasks = 10_000
	// MaxRoles is the number of roles of one job.
	MaxRoles = 500
)

// Job is one job file after it was read. Commands and plugin parameters hold secrets in plain text: they are for the
// tasks, and are masked by fmt and JSON.
type Job struct {
	File        string // its name, for findings
	Name        string
	Version     string
	Contributor string
	Description string
	// RetryCount is how many failures of unknown cause are retried.
	RetryCount     int
	VirtualCluster string
	Deployment     string
	Roles          []Role // in the order of the file
	Images         []Image
	Extras         Extras

	tree *tree
}

// Image is a Docker image of the prerequisites.
type Image struct {
	Name string
	URI  string
	Auth *Auth // nil if the image needs no login
	// Used reports whether a role runs it.
	Used bool
}

// Auth is the login to an image's registry.
type Auth struct {
	Username string
	Password secret.String
	Registry string // https://index.docker.io/v1/ by default
}

// Role is one task role.
type Role struct {
	Name   string // as the user spells it
	Object string // a name that Kubernetes allows: [a-z0-9]+, unique for each role

	Instances    int
	MinFailed    int // -1: failures never end the job
	MinSucceeded int // -1: only the completion of all tasks does
	RetryCount   int // the number of retries of one task; only without a gang

	GPU, MemoryMB int
	MilliCPU      int // thousandths of a processor
	ShmMB         int // 0 if the file doesn't set it
	DiskMB        int // 0 if the file doesn't set it
	Infiniband    bool
	Ports         []Port // by label; ssh and http are always among them

	Image string // the URI
	Auth  bool   // whether the image needs a login
	// Command is the script, with everything filled in; empty if Exec has a program.
	Command secret.String
	// Exec is a program and its arguments, which run without any shell.
	Exec []secret.String
	// Shell runs Command; nil leaves the choice to the runtime.
	Shell   []string
	Plugins []Plugin // in the order in which they run

	SKU        string // type of GPU or of CPU cells, or ""
	SharedSKU  bool   // SKU is the type that another role requests: this role requests none
	PinnedCell string
	Affinity   string // name of the affinity group, or ""
}

// Port is a number of ports under one label.
type Port struct {
	Label string
	Count int
}

// Plugin is one runtime plugin of a role.
type Plugin struct {
	Name          string // cmd, ssh, tensorboard, git, teamwise_storage
	IgnoreFailure bool
	Parameters    Parameters
}

// Parameters are the parameters of a plugin, as JSON, everything filled in. fmt doesn't show them.
type Parameters json.RawMessage

// String masks the parameters.
func (p Parameters) String() string { return secret.String(p).String() }

// GoString masks the parameters.
func (p Parameters) GoString() string { return p.String() }

// MarshalJSON masks the parameters; Reveal returns them.
func (p Parameters) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// Reveal returns the parameters unmasked, as JSON.
func (p Parameters) Reveal() json.RawMessage { return json.RawMessage(p) }

// Extras are the keys of extras that have an effect.
type Extras struct {
	Gang     bool   // tasks start together, or not at all
	Priority string // crit, prod, test, oppo
	// GangRelease, LazyPreemption, IgnoreSuggestedNodes are passed to the scheduler. They are nil if the file doesn't
	// set them.
	GangRelease, LazyPreemption, IgnoreSuggestedNodes *bool
	Storages                                          []Storage
	DefaultStorages                                   bool // an empty list: the user's default storages
	HostNetwork                                       bool
	GracePeriodSec                                    int // between SIGTERM and SIGKILL
	MaxDurationSec                                    int // the limit of each task's run; 0: no limit
	CheckpointDir                                     string
	After                                             []After
	Notify                                            []v1.NotifyState // changes of state that the owner is notified of
	SelectsNotices                                    bool             // the file has jobStatusChangeNotification: Notify counts instead of the owner's choices
}

// After is a job that must end before the first task starts.
type After struct {
	Job   string // NAME, or USER/NAME
	Ended bool   // any end counts; if false, it must succeed
}

// Storage is one storage that the tasks mount.
type Storage struct {
	Name      string
	MountPath string
}

// Tasks returns the number of tasks of all roles.
func (j *Job) Tasks() int {
	n := 0
	for _, r := range j.Roles {
		n += r.Instances
	}
	return n
}

// GPUs returns the number of GPUs of all tasks.
func (j *Job) GPUs() int {
	n := 0
	for _, r := range j.Roles {
		n += r.Instances * r.GPU
	}
	return n
}

// PriorityNumber returns the scheduler's number of the job's priority class.
func (j *Job) PriorityNumber() int { return priorities()[j.Extras.Priority] }

func priorities() map[string]int {
	return map[string]int{"crit": 120, "prod": 100, "test": 10, "oppo": -1}
}

// PriorityClass returns the class that has a number. Users of other schedulers may use different numbers.
func PriorityClass(number int) (class string, ok bool) {
	for class, n := range priorities() {
		if n == number {
			return class, true
		}
	}
	return "", false
}

// Finding makes a finding at a field of the file, or at its nearest ancestor that exists.
func (j *Job) Finding(path strictyaml.Path, rule, message, remedy string) strictyaml.Finding {
	f := strictyaml.Finding{File: j.File, Line: 1, Column: 1, Field: path.String(), Rule: rule,
		Severity: strictyaml.Error, Message: message, Remedy: remedy}
	if j.tree != nil {
		f.Line, f.Column = j.tree.position(path)
	}
	return f
}
