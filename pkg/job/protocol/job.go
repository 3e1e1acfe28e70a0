// Package protocol reads job files in OpenPAI's job protocol, version 2.
// In: the text of one file. Out: a checked Job, with defaults and with all references <% ... %> filled in, or findings that contain the line,
// column and remedy of each mistake.
package protocol

import (
	"encoding/json"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// Limits of a job.
const (
	// MaxBytes is the maximum size of a job file in bytes. Kubernetes must be able to store a large part of the file in one object.
	MaxBytes = 200 << 10
	// MaxTasks is the maximum number of tasks of one role, and of one job.
	MaxTasks = 10_000
	// MaxRoles is the maximum number of roles of one job.
	MaxRoles = 500
)

// Job is a parsed job file. Its commands and plugin parameters contain secrets in plain text, because the tasks need them. fmt and JSON mask the
// secrets.
type Job struct {
	File        string // its name, for findings
	Name        string
	Version     string
	Contributor string
	Description string
	// RetryCount is how many failures with an unknown cause are retried.
	RetryCount     int
	VirtualCluster string
	// NamesVirtualCluster reports whether the file names VirtualCluster. Otherwise VirtualCluster is the protocol's default.
	NamesVirtualCluster bool
	Deployment          string
	Roles               []Role // in the order of the file
	Images              []Image
	Extras              Extras

	tree *tree
}

// Image is a Docker image in the job's prerequisites.
type Image struct {
	Name string
	URI  string
	Auth *Auth // nil if the image needs no login
	// Used reports whether a role runs the image.
	Used bool
}

// Auth contains the credentials for the registry of an image.
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
	// Command is the script, with all references filled in. It is empty if Exec contains a program.
	Command secret.String
	// Exec is a program with its arguments, which runs without a shell.
	Exec []secret.String
	// Shell is the command of the shell that runs Command. If it is nil, the runtime chooses a shell.
	Shell   []string
	Plugins []Plugin // in the order in which they run

	SKU        string // type of GPU or of CPU cells, or ""
	SharedSKU  bool   // SKU is the type that another role requests: this role requests none
	PinnedCell string
	Affinity   string // name of the affinity group, or ""
}

// Port is a label with the number of ports that a task has under it.
type Port struct {
	Label string
	Count int
}

// Plugin is a runtime plugin of a role.
type Plugin struct {
	Name          string // cmd, ssh, tensorboard, git, teamwise_storage
	IgnoreFailure bool
	Parameters    Parameters
}

// Parameters are the parameters of a plugin as JSON, with all references filled in. fmt masks them.
type Parameters json.RawMessage

// String returns a mask instead of the parameters.
func (p Parameters) String() string { return secret.String(p).String() }

// GoString returns a mask instead of the parameters.
func (p Parameters) GoString() string { return p.String() }

// MarshalJSON returns a mask instead of the parameters, which Reveal returns.
func (p Parameters) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }

// Reveal returns the parameters as JSON, without a mask.
func (p Parameters) Reveal() json.RawMessage { return json.RawMessage(p) }

// Extras contains the keys of extras that have an effect.
type Extras struct {
	Gang     bool   // tasks start together, or not at all
	Priority string // crit, prod, test, oppo
	// GangRelease, LazyPreemption and IgnoreSuggestedNodes are options for the scheduler. They are nil if the file doesn't set them.
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

// After names a job that must end before the first task of this job starts.
type After struct {
	Job   string // NAME, or USER/NAME
	Ended bool   // any end counts; if false, it must succeed
}

// Storage is a storage that the tasks mount.
type Storage struct {
	Name      string
	MountPath string
}

// Tasks returns the number of tasks of all roles together.
func (j *Job) Tasks() int {
	n := 0
	for _, r := range j.Roles {
		n += r.Instances
	}
	return n
}

// GPUs returns the number of GPUs of all tasks together.
func (j *Job) GPUs() int {
	n := 0
	for _, r := range j.Roles {
		n += r.Instances * r.GPU
	}
	return n
}

// PriorityNumber returns the number that the scheduler uses for the job's priority class.
func (j *Job) PriorityNumber() int { return priorities()[j.Extras.Priority] }

func priorities() map[string]int {
	return map[string]int{"crit": 120, "prod": 100, "test": 10, "oppo": -1}
}

// PriorityClass returns the priority class with a number. ok is false for a number without a class, which a user of another scheduler may have
// chosen.
func PriorityClass(number int) (class string, ok bool) {
	for class, n := range priorities() {
		if n == number {
			return class, true
		}
	}
	return "", false
}

// Finding makes a finding at a field of the file. If the field doesn't exist, the finding is at the nearest ancestor that exists.
func (j *Job) Finding(path strictyaml.Path, rule, message, remedy string) strictyaml.Finding {
	f := strictyaml.Finding{File: j.File, Line: 1, Column: 1, Field: path.String(), Rule: rule,
		Severity: strictyaml.Error, Message: message, Remedy: remedy}
	if j.tree != nil {
		f.Line, f.Column = j.tree.position(path)
	}
	return f
}
