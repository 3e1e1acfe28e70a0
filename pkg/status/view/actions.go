package view

import (
	"context"
	"io"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/status"
)

// Source provides models of the cluster.
type Source interface {
	// Current returns the latest model, or nil if no model exists yet.
	Current() *status.Cluster
	// Changed returns a channel that receives a value when a new model may exist.
	Changed() <-chan struct{}
}

// Actions sends the requests of the view, and carries out its actions. Calls may take long. They return when their
// context ends. A method with a parameter out writes to out until it returns.
type Actions interface {
	Tasks(ctx context.Context, j *status.Job) (*job.Detail, error)
	Why(ctx context.Context, j *status.Job) (*job.Why, error)
	JobEvents(ctx context.Context, j *status.Job) ([]api.Event, error)
	// JobLogs follows the log of a task (ROLE[INDEX]), or of all tasks if task is "".
	JobLogs(ctx context.Context, j *status.Job, task string, out io.Writer) error
	// Shell returns a command that opens a shell in a task. The command uses the terminal while the view is suspended.
	Shell(j *status.Job, task string) tea.ExecCommand
	StopJob(ctx context.Context, j *status.Job) error
	// RetryJob runs the job again. If the job is being stopped, RetryJob waits until the job has finished.
	RetryJob(ctx context.Context, j *status.Job) error

	ServicePods(ctx context.Context, s *status.Service) ([]Pod, error)
	ServiceLogs(ctx context.Context, s *status.Service, out io.Writer) error
	RestartService(ctx context.Context, s *status.Service, out io.Writer) error

	Cordon(ctx context.Context, machine string) error
	Uncordon(ctx context.Context, machine string) error
	Drain(ctx context.Context, machine string, out io.Writer) error
	MachineJournal(ctx context.Context, m *status.Machine, out io.Writer) error
}

// Pod is a pod of a service.
type Pod struct {
	Name, Node, State string
	Ready             bool
	Restarts          int32
	Message           string
	Age               string
}
