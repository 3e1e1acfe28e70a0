package archive

import (
	"context"
	"fmt"
	"time"

	"github.com/openpai/paictl/pkg/job/api"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// mostGPUs is more than a pod can have. The controller never writes a higher number.
const mostGPUs = 4096

// Outcomes of holds whose work was lost.
const (
	outcomePreempted = "preempted"
	outcomeFailed    = "failed"
)

// Codes of completions. Package pkg/job/controller/machine documents their meanings.
const (
	codeStopped          = -210
	codeAttemptCompleted = -220
	codeTaskDeleted      = -230
	codeRestarted        = -240
	codePreempted        = v1.CodePreempted
)

// SaveHolds implements Store.
func (d *database) SaveHolds(ctx context.Context, f *v1.Framework) error {
	// The job's row is written, too. If the Framework disappears, the controller finds this row and ends the job's holds.
	out, err := headStatements(f)
	if err != nil {
		return err
	}
	return d.write(ctx, append(out, d.holdStatements(f, statusesOf(f))...)...)
}

// statusesOf returns the statuses of all tasks of a job.
func statusesOf(f *v1.Framework) (out []*v1.TaskStatus) {
	if f.Status == nil {
		return nil
	}
	for _, role := range f.Status.AttemptStatus.TaskRoleStatuses {
		out = append(out, role.TaskStatuses...)
	}
	return out
}

// holdRow returns the upsert that begins, extends or ends a hold. These changes may come in any order and repeatedly. A recorded end doesn't
// change, and the time of the last check only increases. After the end, only the outcome can still change, to one that means that the work was
// lost.
func holdRow() *upsert {
	return &upsert{"gpu_holds", []string{
		"pod_uid", "uid", "job", "pod", "user_name", "vc", "type", "opportunistic", "gpus", "started", "seen", "ended", "outcome",
	}, `(pod_uid) DO UPDATE SET
		seen = CASE WHEN excluded.seen > gpu_holds.seen THEN excluded.seen ELSE gpu_holds.seen END,
		ended = COALESCE(gpu_holds.ended, excluded.ended),
		outcome = CASE WHEN excluded.outcome = '' THEN gpu_holds.outcome ELSE excluded.outcome END
		WHERE gpu_holds.ended IS NULL AND (excluded.ended IS NOT NULL OR excluded.seen > gpu_holds.seen)
		OR excluded.outcome <> '' AND excluded.outcome <> gpu_holds.outcome`}
}

// holdStatements returns the statements that write the holds of a job's tasks.
func (d *database) holdStatements(f *v1.Framework, tasks []*v1.TaskStatus) []statement {
	now := seconds(d.now())
	j := api.Summary(f)
	rows, seen := [][]any{}, map[string]bool{}
	for _, t := range tasks {
		a := &t.AttemptStatus
		if a.GPUs == nil || a.GPUs.Count <= 0 || a.GPUs.Count > mostGPUs || a.GPUs.Since.IsZero() || a.PodUID == nil || seen[*a.PodUID] {
			continue
		}
		seen[*a.PodUID] = true
		started := seconds(a.GPUs.Since.Time)
		var ended any
		last := later(started, now)
		if a.CompletionTime != nil {
			last = later(started, seconds(a.CompletionTime.Time))
			ended = last.UnixMicro()
		}
		rows = append(rows, []any{
			text(*a.PodUID), j.UID, text(j.Name), text(a.PodName), text(j.User), text(j.VirtualCluster), text(a.GPUs.Type),
			number(a.GPUs.Opportunistic), a.GPUs.Count, started.UnixMicro(), last.UnixMicro(), ended, outcomeOf(f.Status, a),
		})
	}
	var out []statement
	if len(rows) > 0 {
		// If the holds of the job were already summed up by hours, the new rows would count twice, so they are deleted.
		out = append(holdRow().rows(rows), statement{"DELETE FROM gpu_holds WHERE uid = ? AND EXISTS (SELECT 1 FROM gpu_folded WHERE gpu_folded.uid = gpu_holds.uid)", []any{j.UID}})
	}
	if f.Status != nil && f.Status.State == v1.Completed {
		out = append(out, endHolds("uid = ?", j.UID))
	}
	return out
}

// endHolds returns a statement for holds whose end wasn't observed. It ends them at the time when they were last seen.
func endHolds(where string, args ...any) statement {
	return statement{"UPDATE gpu_holds SET ended = seen WHERE ended IS NULL AND " + where, args}
}

// outcomeOf returns why the work of a task's attempt was lost, or "" if it wasn't lost or hasn't ended. Work that a user stopped doesn't count as
// lost, because only the user knows whether it was useful.
func outcomeOf(s *v1.FrameworkStatus, a *v1.TaskAttemptStatus) string {
	if own := thrownAway(completionOf(a)); own != "" {
		return own
	}
	if c := s.AttemptStatus.CompletionStatus; c != nil {
		return thrownAway(c.CompletionStatus) // that of the whole gang
	}
	return ""
}

func completionOf(a *v1.TaskAttemptStatus) *v1.CompletionStatus {
	if a.CompletionStatus == nil {
		return nil
	}
	return a.CompletionStatus.CompletionStatus
}

func thrownAway(c *v1.CompletionStatus) string {
	switch {
	case c == nil || c.Type.Name != v1.Failed:
		return ""
	case c.Code == codePreempted:
		return outcomePreempted
	case c.Code == codeStopped || c.Code == codeAttemptCompleted || c.Code == codeTaskDeleted || c.Code == codeRestarted:
		return ""
	}
	return outcomeFailed
}

// Holds implements Store.
func (d *database) Holds(ctx context.Context) ([]api.Hold, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT pod, job, user_name, vc, type, opportunistic, gpus FROM gpu_holds WHERE ended IS NULL")
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var out []api.Hold
	err = each(rows, func() error {
		var h api.Hold
		var opportunistic int64
		err := rows.Scan(&h.Pod, &h.Job, &h.User, &h.VirtualCluster, &h.Type, &opportunistic, &h.GPUs)
		h.Opportunistic = opportunistic != 0
		out = append(out, h)
		return err
	})
	return out, err
}

// seconds truncates a time to the precision of Kubernetes, so that the time is unchanged when it is read back.
func seconds(t time.Time) time.Time { return t.Truncate(time.Second) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
