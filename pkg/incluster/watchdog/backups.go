package watchdog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/openpai/paictl/pkg/incluster/podapi"
)

// backupsPath is the CronJob of the service cluster-backup.
const backupsPath = "/apis/batch/v1/namespaces/pai-system/cronjobs/cluster-backup"

// backups is how the schedule of backups goes. A time that is zero has never come.
type backups struct {
	made, due, succeeded time.Time
	running              int
}

// backups asks for the schedule of backups; nil where there is none.
func (a API) backups(ctx context.Context) (*backups, error) {
	var job struct {
		Metadata struct {
			CreationTimestamp time.Time `json:"creationTimestamp"`
		} `json:"metadata"`
		Status struct {
			Active             []struct{} `json:"active"`
			LastScheduleTime   time.Time  `json:"lastScheduleTime"`
			LastSuccessfulTime time.Time  `json:"lastSuccessfulTime"`
		} `json:"status"`
	}
	err := a.Read(ctx, backupsPath, &job)
	if said, ok := errors.AsType[*podapi.StatusError](err); ok && said.Code == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the schedule of backups: %w", err)
	}
	return &backups{made: job.Metadata.CreationTimestamp, due: job.Status.LastScheduleTime, succeeded: job.Status.LastSuccessfulTime, running: len(job.Status.Active)}, nil
}

// CheckBackups asks how the schedule of backups goes. What was known stays where no one answers.
func (w *Watchdog) CheckBackups(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(w.config.Timeout))
	defer cancel()
	b, err := w.api.backups(ctx)
	if err != nil {
		w.log("the schedule of backups is unknown", "err", err)
		return
	}
	w.results.setBackups(b)
}
