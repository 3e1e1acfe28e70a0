package watchdog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
	_ "time/tzdata" // the image has no zones

	"github.com/robfig/cron/v3"

	"github.com/openpai/paictl/pkg/node/podapi"
)

const (
	// backupsPath is the path of the CronJob of the service cluster-backup.
	backupsPath = "/apis/batch/v1/namespaces/pai-system/cronjobs/cluster-backup"
	// notesPath is the path of the ConfigMap in which every backup program records the time of a backup.
	notesPath = "/api/v1/namespaces/kube-system/configmaps/paictl"
	noteKey   = "backup"
	// historyKey is the key of a note about the last backup with the job history. The note is the time of this backup, or a word if no such backup
	// exists. The note is missing if the cluster has no job history.
	historyKey = "backup-history"
	// missed is the number of successive runs that may fail before the last good backup counts as too old.
	missed = 2
	// skew limits how far the clock of a machine that records a backup may be ahead. Later times are ignored, because they could hide an outdated
	// backup.
	skew = 5 * time.Minute
	// unknownInterval is the assumed interval if a schedule can't be parsed.
	unknownInterval = 24 * time.Hour
)

// backups is the state of scheduled backups. Unknown times are zero.
type backups struct {
	due, succeeded time.Time
	running        int
	suspended      bool
	// good is the time of the last good backup, or the creation time of the schedule if no backup exists. overdue is the time after which this backup
	// is too old.
	good, overdue time.Time
	// history and historyOverdue are the same times for backups with the job history. Both times are zero if the cluster has no job history.
	history, historyOverdue time.Time
}

// cronJob holds the fields of the CronJob that the watchdog needs.
type cronJob struct {
	Metadata struct {
		CreationTimestamp time.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Schedule    string `json:"schedule"`
		TimeZone    string `json:"timeZone"`
		Suspend     bool   `json:"suspend"`
		JobTemplate struct {
			Spec struct {
				ActiveDeadlineSeconds int64 `json:"activeDeadlineSeconds"`
			} `json:"spec"`
		} `json:"jobTemplate"`
	} `json:"spec"`
	Status struct {
		Active             []struct{} `json:"active"`
		LastScheduleTime   time.Time  `json:"lastScheduleTime"`
		LastSuccessfulTime time.Time  `json:"lastSuccessfulTime"`
	} `json:"status"`
}

// backups reads the current state of scheduled backups. It returns nil if no schedule exists.
func (a API) backups(ctx context.Context, now time.Time) (*backups, error) {
	var job cronJob
	err := a.Read(ctx, backupsPath, &job)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the schedule of backups: %w", err)
	}
	var notes struct {
		Data map[string]string `json:"data"`
	}
	if err := a.Read(ctx, notesPath, &notes); err != nil && !isMissing(err) {
		return nil, fmt.Errorf("ask when the last backup was made: %w", err)
	}
	b := &backups{
		due: job.Status.LastScheduleTime, succeeded: job.Status.LastSuccessfulTime, running: len(job.Status.Active), suspended: job.Spec.Suspend,
		good: later(job.Metadata.CreationTimestamp, job.Status.LastSuccessfulTime),
	}
	b.good = later(b.good, noted(notes.Data[noteKey], now))
	b.overdue = job.overdue(b.good)
	if at := notes.Data[historyKey]; at != "" {
		b.history = later(job.Metadata.CreationTimestamp, noted(at, now))
		b.historyOverdue = job.overdue(b.history)
	}
	return b, nil
}

// noted parses a recorded time. It returns the zero time if the text is invalid or the time is too far in the future.
func noted(text string, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.After(now.Add(skew)) {
		return time.Time{}
	}
	return at
}

// overdue returns the time by which two runs after a good backup should have finished. A run may take until its deadline or until the next run is
// due.
func (j *cronJob) overdue(good time.Time) time.Time {
	zone, err := time.LoadLocation(j.Spec.TimeZone) // "" is UTC
	if err != nil {
		zone = time.UTC
	}
	schedule, err := cron.ParseStandard(j.Spec.Schedule) // as Kubernetes reads it
	if err != nil {
		return good.Add(missed * unknownInterval)
	}
	at := good.In(zone)
	for range missed {
		if at = schedule.Next(at); at.IsZero() { // for example, February 31
			return good.Add(missed * unknownInterval)
		}
	}
	last := at.Add(time.Duration(j.Spec.JobTemplate.Spec.ActiveDeadlineSeconds) * time.Second)
	if next := schedule.Next(at); !next.IsZero() && next.Before(last) {
		return next
	}
	return last
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func isMissing(err error) bool {
	said, ok := errors.AsType[*podapi.StatusError](err)
	return ok && said.Code == http.StatusNotFound
}

// CheckBackups updates the state of scheduled backups. If the API server doesn't respond, it keeps the previous state.
func (w *Watchdog) CheckBackups(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.config.Timeout))
	defer cancel()
	b, err := w.api.backups(ctx, time.Now())
	if err != nil {
		w.log("the schedule of backups is unknown", "err", err)
		return
	}
	w.results.setBackups(b)
}
