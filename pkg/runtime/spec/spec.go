// Package spec defines the data that a submission passes to the runtime inside a job's pods: the commands with the
// values of secrets and parameters, the roles, the plugins. It is stored in a Secret, one per job. In: nothing. Out:
// types; Decode, which returns an error for fields that this runtime doesn't know.
package spec

import "encoding/json"

// Version is the only version so far.
const Version = 1

// MaxCode limits an archive of code that is submitted with the job, in bytes.
const MaxCode = 256 << 20

// Paths in a task's container.
const (
	// Home holds the runtime itself, its files, and the code and logs of plugins.
	Home = "/usr/local/pai"
	// Runtime is the runtime's program: a copy by the init container, or a link to that in Image.
	Runtime = Home + "/runtime"
	// InitContainer is the name of the container that makes the copy.
	InitContainer = "init"
	// Image is the runtime's own image if the cluster can mount it, and ImageRuntime is the program in that image.
	Image        = "/usr/local/pai-image"
	ImageRuntime = Image + "/pai-runtime"
	// File is the spec, on a volume of the job's Secret.
	File = "/usr/local/pai-spec/spec.json"
	// Rules is the failure rules' file, on a volume of a ConfigMap that follows changes.
	Rules = "/usr/local/pai-rules/rules.yaml"
	// RulesConfigMap is the name of that ConfigMap, in the namespace of jobs.
	RulesConfigMap = "runtime-exit-spec-configuration"
	// TerminationLog is the path of the exit report.
	TerminationLog = "/tmp/pai-termination-log"
)

// Spec is one job, as its tasks see it.
type Spec struct {
	Version        int    `json:"version"`
	Framework      string `json:"framework"` // name of the object
	User           string `json:"user"`
	Job            string `json:"job"`
	VirtualCluster string `json:"virtualCluster"`
	Roles          []Role `json:"roles"` // in the order of the job file
	// Gang reports whether every task waits until all tasks of the job have an address.
	Gang bool `json:"gang"`
	// BarrierTimeoutSec is how long a task waits for the others; then it ends with code 251. 0 means 600.
	BarrierTimeoutSec int `json:"barrierTimeoutSec,omitempty"`
	// HostNetwork reports whether tasks use the machine's addresses. Then ports are computed in [PortStart, PortEnd)
	// from the pod's UID (peers.HostPorts). Otherwise every task has its own address and the same ports.
	HostNetwork bool `json:"hostNetwork,omitempty"`
	PortStart   int  `json:"portStart,omitempty"`
	PortEnd     int  `json:"portEnd,omitempty"`
	// GracePeriodSec is the time between SIGTERM and SIGKILL; the pod's own grace period is a few seconds longer.
	GracePeriodSec int `json:"gracePeriodSec"`
	// CheckpointDir is a folder that outlives attempts, on storage of the job; "" without such a folder.
	CheckpointDir string `json:"checkpointDir,omitempty"`
	// Code is a folder that was submitted with the job, or nil.
	Code *Code `json:"code,omitempty"`
	// PeersURL is where the tasks of a gang wait for the addresses of all: PeersURL + "/" + Framework. It is empty in jobs that an earlier
	// paictl submitted, which have the addresses in a ConfigMap.
	PeersURL string `json:"peersURL,omitempty"`
	// Domain is the domain suffix of the tasks' names: ROLE-INDEX.DOMAIN.
	Domain string `json:"domain,omitempty"`
}

// Role is one task role.
type Role struct {
	Name         string `json:"name"`   // as the user spells it
	Object       string `json:"object"` // as the Framework does: [a-z0-9]+
	Instances    int    `json:"instances"`
	GPU          int    `json:"gpu"`
	CPU          int    `json:"cpu"`
	MemoryMB     int    `json:"memoryMB"`
	ShmMB        int    `json:"shmMB"` // 0 if the job file doesn't set it
	MinFailed    int    `json:"minFailed"`
	MinSucceeded int    `json:"minSucceeded"`
	Ports        []Port `json:"ports"` // by label
	// Command is the script, after all references were replaced. Shell runs it.
	Command string   `json:"command"`
	Shell   []string `json:"shell,omitempty"` // default: bash or sh, with errexit, nounset and pipefail if it supports them
	// Exec runs a program without any shell, instead of Command.
	Exec    []string `json:"exec,omitempty"`
	Plugins []Plugin `json:"plugins,omitempty"`
}

// Port is a number of ports under one label.
type Port struct {
	Label string `json:"label"`
	Count int    `json:"count"`
}

// Plugin is one runtime plugin of a role. Plugins run in the order of their list.
type Plugin struct {
	Name          string          `json:"name"` // cmd, ssh, tensorboard, git, teamwise_storage
	IgnoreFailure bool            `json:"ignoreFailure,omitempty"`
	Parameters    json.RawMessage `json:"parameters,omitempty"`
}

// Code is a tar archive, gzipped, identified by its content.
type Code struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // size of the archive in bytes
	Dir    string `json:"dir"`  // where it is unpacked; also the commands' working directory
}
