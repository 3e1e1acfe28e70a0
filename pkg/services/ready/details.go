package ready

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// details reads further data about objects that may have a problem. If a read fails, the problem is reported without further data.
type details interface {
	events(ctx context.Context, about corev1.ObjectReference) []corev1.Event
	log(ctx context.Context, pod *corev1.Pod, container string, previous bool) []string
}

const eventAge = 3 * time.Second

// logBytes is the maximum number of bytes that are read from a log.
const logBytes = 64 << 10

// reader reads from the API, and caches the results during a wait.
type reader struct {
	client  kubernetes.Interface
	answers map[types.UID]answer
	logs    map[string][]string
}

type answer struct {
	at     time.Time
	events []corev1.Event
}

func newReader(c kubernetes.Interface) *reader {
	return &reader{client: c, answers: map[types.UID]answer{}, logs: map[string][]string{}}
}

func (r *reader) events(ctx context.Context, about corev1.ObjectReference) []corev1.Event {
	if a, ok := r.answers[about.UID]; ok && time.Since(a.at) < eventAge {
		return a.events
	}
	list, err := r.client.CoreV1().Events(about.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.kind": about.Kind, "involvedObject.name": about.Name}.String(),
	})
	if err != nil {
		return nil
	}
	out := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.Name != about.Name || e.InvolvedObject.UID != "" && e.InvolvedObject.UID != about.UID
	})
	slices.SortStableFunc(out, func(a, b corev1.Event) int { return eventTime(b).Compare(eventTime(a)) })
	r.answers[about.UID] = answer{time.Now(), out}
	return out
}

func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.EventTime.Time
}

func (r *reader) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) []string {
	key := fmt.Sprint(pod.UID, container, restarts(pod, container), previous)
	if lines, ok := r.logs[key]; ok {
		return lines
	}
	lines, err := tail(ctx, r.client, pod.Namespace, pod.Name, container, previous, logLines)
	if err != nil {
		return nil
	}
	r.logs[key] = lines
	return lines
}

func tail(ctx context.Context, c kubernetes.Interface, namespace, pod, container string, previous bool, lines int) ([]string, error) {
	count, limit := int64(lines), int64(logBytes)
	stream, err := c.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
		Container: container, Previous: previous, TailLines: &count, LimitBytes: &limit,
	}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s in pod %s/%s: %w", container, namespace, pod, err)
	}
	defer stream.Close()
	raw, err := io.ReadAll(io.LimitReader(stream, logBytes))
	if err != nil {
		return nil, fmt.Errorf("read the log of %s in pod %s/%s: %w", container, namespace, pod, err)
	}
	return lastLines(string(raw), lines), nil
}

// firstEvent returns the newest event with one of the reasons, and reports whether it exists. events must be sorted with the newest event first.
func firstEvent(events []corev1.Event, reasons ...string) (corev1.Event, bool) {
	for _, e := range events {
		if slices.Contains(reasons, e.Reason) {
			return e, true
		}
	}
	return corev1.Event{}, false
}
