package job

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// How often Follow reads a job again if it sees no change. A watch reports changes of the Framework. Pods and the queue are polled, because they
// matter only until the job runs.
const (
	lookWaiting = 2 * time.Second
	lookRunning = 30 * time.Second
	lookAtMost  = 200 * time.Millisecond // the minimum time between two reads
	retryFirst  = time.Second
	retryMost   = 15 * time.Second
)

// Follow calls seen with the state of a job, now and after each possible change, until seen returns false. Follow continues if the connection is
// lost: it calls problem with the error, and with nil when the connection is back.
func (c *Client) Follow(ctx context.Context, j *Job, seen func(*Detail) (more bool), problem func(error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wake := make(chan struct{}, 1)
	go c.alarm(ctx, j.Object, wake)
	pause, lost := retryFirst, false
	for {
		next := pause
		d, err := c.look(ctx, j)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if lost {
				problem(nil)
			}
			pause, lost = retryFirst, false
			if !seen(d) {
				return nil
			}
			next = lookWaiting
			if Phase(d.State) == Running {
				next = lookRunning
			}
		case final(err):
			return err
		default:
			if !lost {
				problem(err)
			}
			lost, pause = true, min(2*pause, retryMost)
		}
		if err := sleep(ctx, next, wake); err != nil {
			return err
		}
	}
}

// sleep waits until the Framework changes, or until the time d has passed.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	case <-wake:
	}
	// Changes that arrive together cause only one read.
	timer.Reset(lookAtMost)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// alarm sends to wake whenever the Framework changes.
func (c *Client) alarm(ctx context.Context, object string, wake chan<- struct{}) {
	for ctx.Err() == nil {
		err := c.Frameworks.Watch(ctx, object, func(*v1.Framework) {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		pause := retryFirst
		if err != nil {
			pause = retryMost
		}
		if sleep(ctx, pause, nil) != nil {
			return
		}
	}
}

// final reports whether an error is permanent, so that another try can't succeed.
func final(err error) bool {
	return IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || isNoCRD(err)
}

// look reads as much as is necessary to know the state of a job.
func (c *Client) look(ctx context.Context, j *Job) (*Detail, error) {
	now, err := c.brief(ctx, j.User, j.Name, j.Object)
	if err != nil {
		return nil, err
	}
	if !now.Live {
		return archivedDetail(now), nil
	}
	list, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: v1.LabelFramework + "=" + j.Object, FieldSelector: "status.phase=" + string(corev1.PodPending)})
	if err != nil {
		return nil, c.Explain(err)
	}
	return liveDetail(now, append([]corev1.Pod{}, list.Items...), c.queue(ctx, now.framework.Labels[v1.LabelVC])), nil
}
