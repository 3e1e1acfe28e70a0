// Package support collects the data that helps to diagnose a cluster into one archive, without its secrets.
// In: a configuration folder, a connection to the machines, a connection to the API; each may be missing. Out: a
// tar.gz with an index, which also lists the parts that could not be read.
package support

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
)

// Parts of a bundle, each a folder in the bundle, in the order of the list.
const (
	PartConfiguration = "configuration"
	PartMachines      = "machines"
	PartKubernetes    = "kubernetes"
	PartServices      = "services"
	PartScheduler     = "scheduler"
	PartLogs          = "logs"
	PartReports       = "reports"
)

// Parts returns the names of all parts.
func Parts() []string {
	return []string{PartConfiguration, PartMachines, PartKubernetes, PartServices, PartScheduler, PartLogs, PartReports}
}

// Sources are the sources of a bundle's content.
type Sources struct {
	// Folder is the configuration's. Config is nil if it can't be read; FolderErr is the reason.
	Folder    string
	Config    *config.Cluster
	FolderErr error
	// Spec and Run are for connecting to the machines; Spec is nil if that isn't possible, and MachinesErr is
	// the reason. Run must be sufficient for "cluster status".
	Spec        *engine.Spec
	Run         engine.Options
	MachinesErr error
	// Cluster is nil if there is no kubeconfig; ClusterErr is the reason.
	Cluster    *kube.Cluster
	ClusterErr error
	// Services returns the state of the services.
	Services func(context.Context) ([]services.Status, error)
	// Reports are the outputs of other paictl commands about the cluster, each a file in the folder reports.
	Reports []Report
}

// Report is the output of a command, as a file.
type Report struct {
	Name string // the name of the file, without .json
	What string // a sentence for the index
	// Ask returns the content of the file's JSON.
	Ask func(context.Context) (any, error)
}

// Job is a user's job.
type Job struct{ User, Name string }

// Options of a bundle.
type Options struct {
	Sources
	// Name is the folder in the archive.
	Name string
	// Version and Command are the version and the command line of paictl.
	Version, Command string
	// Since is how far back logs and journals are collected; 0 means from their beginning.
	Since time.Duration
	// Jobs are those whose environment and logs are included.
	Jobs []Job
	// MaxSize limits the archive, in bytes.
	MaxSize int64
	// Without are the parts to omit.
	Without []string
	// SpoolDir is the folder for larger files until they are in the archive. The files have no name there.
	SpoolDir string
	// Clock is time.Now in the program.
	Clock func() time.Time
	// Progress receives progress messages; calls are never concurrent.
	Progress func(part, message string)
	// Limits of time and size; zero fields have defaults.
	Limits Limits
}

// Limits limit the cost of one source.
type Limits struct {
	Part    time.Duration // for all of a part, except machines and logs
	Machine time.Duration // one machine's script
	Log     time.Duration // one container's log
	Logs    time.Duration // all logs together
	// Head and Tail are how many bytes of a log are kept from its beginning and from its end.
	Head, Tail int
	// Parallel is how many machines, and how many logs, are read at a time.
	Parallel int
}

func (l *Limits) defaults() {
	set(&l.Part, 3*time.Minute)
	set(&l.Machine, 2*time.Minute)
	set(&l.Log, 30*time.Second)
	set(&l.Logs, 10*time.Minute)
	set(&l.Head, 256<<10)
	set(&l.Tail, 768<<10)
	set(&l.Parallel, 8)
}

func set[T int | int64 | time.Duration](v *T, fallback T) {
	if *v <= 0 {
		*v = fallback
	}
}

// DefaultMaxSize is the default limit of the size of an archive, in bytes.
const DefaultMaxSize = 500_000_000
