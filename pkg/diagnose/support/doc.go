// Package support collects diagnostic data about a cluster into one archive, without the cluster's secrets.
// In: a configuration folder, a connection to the machines, a connection to the API; each of these may be missing. Out: a tar.gz with an index,
// which also lists the parts that could not be read.
package support

import (
	"context"
	"time"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services"
)

// Parts of a bundle. Each part is a folder in the bundle.
const (
	PartConfiguration = "configuration"
	PartMachines      = "machines"
	PartKubernetes    = "kubernetes"
	PartServices      = "services"
	PartScheduler     = "scheduler"
	PartLogs          = "logs"
	PartReports       = "reports"
)

// Parts returns the names of all parts, in the order of the bundle.
func Parts() []string {
	return []string{PartConfiguration, PartMachines, PartKubernetes, PartServices, PartScheduler, PartLogs, PartReports}
}

// Sources holds the connections and the data for a bundle.
type Sources struct {
	// Folder is the configuration folder. If it can't be read, Config is nil and FolderErr is the reason.
	Folder    string
	Config    *config.Cluster
	FolderErr error
	// Spec describes the machines, and Run contains the options for connecting to the machines. If no connection is possible, Spec is nil and
	// MachinesErr is the reason. Run must contain all options that "cluster status" needs.
	Spec        *engine.Spec
	Run         engine.Options
	MachinesErr error
	// Cluster is the connection to the API. Without a connection, Cluster is nil and ClusterErr is the reason.
	Cluster    *kube.Cluster
	ClusterErr error
	// Services returns the state of the services.
	Services func(context.Context) ([]services.Status, error)
	// Reports lists outputs of other paictl commands about the cluster. Each report becomes a file in the folder reports.
	Reports []Report
}

// Report is the output of a command. It becomes a file.
type Report struct {
	Name string // the name of the file, without .json
	What string // a sentence for the index
	// Ask returns the content of the file. The content is written as JSON.
	Ask func(context.Context) (any, error)
}

// Job identifies a user's job.
type Job struct{ User, Name string }

// Options configures a bundle.
type Options struct {
	Sources
	// Name is the name of the folder in the archive.
	Name string
	// Version is the version of paictl. Command is its command line.
	Version, Command string
	// Since limits the age of collected logs and journals; 0 means no limit.
	Since time.Duration
	// Jobs lists the jobs whose environment and logs are included.
	Jobs []Job
	// MaxSize is the maximum size of the archive in bytes.
	MaxSize int64
	// Without lists the parts to omit.
	Without []string
	// SpoolDir is the folder for larger files until they are added to the archive. These files have no names, so they disappear when the program exits.
	SpoolDir string
	// Clock returns the current time. The program uses time.Now.
	Clock func() time.Time
	// Progress receives progress messages. Calls are never concurrent.
	Progress func(part, message string)
	// Limits contains limits for time and size. Zero fields mean the defaults.
	Limits Limits
}

// Limits contains limits for the time and the size of each source's data.
type Limits struct {
	Part    time.Duration // for all of a part, except machines and logs
	Machine time.Duration // one machine's script
	Log     time.Duration // one container's log
	Logs    time.Duration // all logs together
	// Head and Tail are the numbers of bytes to keep from the beginning and from the end of a log.
	Head, Tail int
	// Parallel is the maximum number of machines that are read at the same time. It also applies to logs.
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
