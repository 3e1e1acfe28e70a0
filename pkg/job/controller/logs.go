package controller

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/controller/machine"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

const (
	logWorkers  = 8
	logTimeout  = 10 * time.Second
	logPatience = 20 * time.Second // after which a pod is removed without its log
	// logRest is how long the end of a job waits for logs that are still being read. A kubelet that sends a log notices the end of the program
	// only once a second, and the pod may be gone by then.
	logRest     = 3 * time.Second
	logQueue    = 4096
	logFollowed = 64       // the maximum number of logs of terminating programs at a time; further logs are lost
	logLines    = 20_000   // requested from the kubelet, which counts lines from the end but not bytes
	logRead     = 64 << 20 // read at most, however long the lines
	appName     = "app"
)

// logSaver saves the ends of logs before their pods are removed. It gives no guarantee. If a kubelet doesn't respond, logSaver delays a retry by
// seconds at most, and the log may be lost.
type logSaver struct {
	r     *reconciler
	work  chan logJob             // of pods that are removed
	early chan logJob             // of programs that have ended, whose pods aren't removed yet
	open  chan struct{}           // has room for the logs that are followed
	done  chan event.GenericEvent // Frameworks whose logs are saved

	mu      sync.Mutex
	state   map[types.UID]*logState
	reading map[string]*logReading // by Framework
	waiting map[string]bool        // Frameworks that wait for a free slot for a log
}

// logReading counts the logs of a Framework that are currently being read.
type logReading struct {
	n     int
	since time.Time // when the job's end began to wait for them; zero: it doesn't
}

type logJob struct {
	framework string
	uid       types.UID // the UID of the Framework: a running job may not be in the archive yet
	d         machine.Deletion
	pod       *corev1.Pod // as it was last seen; nil if it never was
	early     bool
}

func (j *logJob) key() api.LogKey {
	l := j.d.Log
	return api.LogKey{Framework: j.framework, UID: string(j.uid), Role: l.Role, Task: l.Index, Attempt: l.Attempt, TaskAttempt: l.TaskAttempt}
}

type logState struct {
	asked  time.Time
	done   bool
	early  bool // the pod wasn't being removed when its log was requested
	failed bool
}

func newLogSaver(r *reconciler) *logSaver {
	return &logSaver{
		r: r, work: make(chan logJob, logQueue), early: make(chan logJob, logQueue), open: make(chan struct{}, logFollowed), done: make(chan event.GenericEvent, logQueue),
		state: map[types.UID]*logState{}, reading: map[string]*logReading{}, waiting: map[string]bool{},
	}
}

// saved reports whether a pod may be removed, because its log is saved or can't be saved. Otherwise saved begins to save the log. The Framework
// is queued again when the log is saved, or when there is room for another log.
func (l *logSaver) saved(f *v1.Framework, d machine.Deletion) bool {
	if l.r.o.LogBytes < 0 {
		return true
	}
	now := l.r.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state[d.UID]
	if s != nil && s.early && (!s.done || s.failed) {
		s = nil // read it again, because early logs are read last, or because it failed
	}
	if s == nil {
		select {
		case l.work <- logJob{f.Name, f.UID, d, l.r.cache.podOf(d.Name, d.UID), false}:
			s = &logState{asked: now}
			l.state[d.UID] = s
		default:
			l.waiting[f.Name] = true // there is no free slot: a job may have thousands of logs
			return false
		}
	}
	return s.done || now.Sub(s.asked) > logPatience
}

// ends begins to save the log of a program that has ended.
func (l *logSaver) ends(f *v1.Framework, d machine.Deletion) {
	if l.r.o.LogBytes < 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state[d.UID] != nil {
		return
	}
	select {
	case l.early <- logJob{f.Name, f.UID, d, l.r.cache.podOf(d.Name, d.UID), true}:
		l.state[d.UID] = &logState{asked: l.r.now(), early: true}
	default:
		l.waiting[f.Name] = true
	}
}

// taken begins to save the logs of pods that other programs remove: the scheduler in favor of another gang, an eviction, or an administrator.
// Such pods are removed when their programs have ended, independently of the job. When a machine is drained, a pod whose program has already
// ended is removed without notice. So the log of each program is saved when the program ends.
func (l *logSaver) taken(f *v1.Framework, pods []*corev1.Pod) {
	for _, p := range pods {
		if p.DeletionTimestamp == nil && !terminated(p) {
			continue
		}
		of := logOf(p)
		switch d := (machine.Deletion{Name: p.Name, UID: p.UID, Log: of}); {
		case of == nil:
		case p.DeletionTimestamp != nil:
			l.saved(f, d)
		default:
			l.ends(f, d)
		}
	}
}

// forget drops the state of a pod that no longer exists.
func (l *logSaver) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.state, uid)
}

// rest returns how long the end of a Framework must wait for logs that are still being read. The Framework is queued again when these logs have
// been read.
func (l *logSaver) rest(framework string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	reading := l.reading[framework]
	if reading == nil {
		return 0
	}
	now := l.r.now()
	if reading.since.IsZero() {
		reading.since = now
	}
	return max(0, logRest-now.Sub(reading.since))
}

func (l *logSaver) begin(framework string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reading[framework] == nil {
		l.reading[framework] = &logReading{}
	}
	l.reading[framework].n++
}

func (l *logSaver) finish(ctx context.Context, framework string) {
	l.mu.Lock()
	reading := l.reading[framework]
	reading.n--
	last := reading.n == 0
	if last {
		delete(l.reading, framework)
	}
	waited := !reading.since.IsZero()
	l.mu.Unlock()
	if last && waited {
		l.lookAgain(ctx, framework)
	}
}

// run saves logs until the context ends.
func (l *logSaver) run(ctx context.Context) error {
	var group sync.WaitGroup
	for range logWorkers {
		group.Go(func() {
			for {
				j, ok := l.next(ctx)
				if !ok {
					return
				}
				l.room(ctx)
				if p := l.r.cache.podOf(j.d.Name, j.d.UID); p != nil {
					j.pod = p
					if !terminated(p) {
						group.Go(func() { l.follow(ctx, j, p) })
						continue
					}
				}
				l.ended(ctx, j, l.copy(ctx, j))
			}
		})
	}
	group.Wait()
	return nil
}

// next waits for a log to save. Logs of pods that are being removed come first. next returns false when the context ends.
func (l *logSaver) next(ctx context.Context) (logJob, bool) {
	select {
	case j := <-l.work:
		return j, true
	default:
	}
	select {
	case <-ctx.Done():
		return logJob{}, false
	case j := <-l.work:
		return j, true
	case j := <-l.early:
		return j, true
	}
}

// room queues the Frameworks again that found no free slot for a log. It does so when at least half of the slots are free.
func (l *logSaver) room(ctx context.Context) {
	if len(l.work) > cap(l.work)/2 || len(l.early) > cap(l.early)/2 {
		return
	}
	l.mu.Lock()
	waiting := l.waiting
	if len(waiting) > 0 {
		l.waiting = map[string]bool{}
	}
	l.mu.Unlock()
	for name := range waiting {
		l.lookAgain(ctx, name)
	}
}

// ended counts and logs the result of saving a log, and allows the removal of the pod.
func (l *logSaver) ended(ctx context.Context, j logJob, err error) {
	result := "ok"
	if errors.Is(err, errNoLog) {
		result = "none"
	} else if err != nil {
		result = "error"
		what := "a log is lost"
		if j.early {
			what = "a log isn't saved yet; it is read again before its pod is removed"
		}
		l.r.o.Log.Info(what, "pod", j.d.Name, "reason", err.Error())
		l.mu.Lock()
		if s := l.state[j.d.UID]; s != nil && s.early == j.early {
			s.failed = true
		}
		l.mu.Unlock()
	}
	l.r.metrics.logs.WithLabelValues(result).Inc()
	l.release(ctx, j)
}

// release allows the removal of the pod, and queues the pod's Framework if the Framework waits for this.
func (l *logSaver) release(ctx context.Context, j logJob) {
	l.mu.Lock()
	waited := false
	if s := l.state[j.d.UID]; s != nil && !s.done && s.early == j.early {
		s.done, waited = true, !j.early
	}
	l.mu.Unlock()
	if waited {
		l.lookAgain(ctx, j.framework)
	}
}

func (l *logSaver) lookAgain(ctx context.Context, framework string) {
	f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: framework, Namespace: l.r.o.Namespace}}
	select {
	case l.done <- event.GenericEvent{Object: f}:
	case <-ctx.Done():
	}
}

// follow reads the output of a program while it is being terminated, because Kubernetes removes the log of a deleted pod as soon as the program
// has ended. The pod may be removed once follow is reading.
func (l *logSaver) follow(ctx context.Context, j logJob, p *corev1.Pod) {
	select {
	case l.open <- struct{}{}:
		defer func() { <-l.open }()
	default:
		l.ended(ctx, j, errors.New("too many are being read"))
		return
	}
	l.ended(ctx, j, func() error {
		container := logContainer(p)
		switch {
		case container == "" && p.Spec.NodeName == "":
			return errNoLog
		case container == "":
			container = appName // its machine may know more than it has reported so far
		}
		grace := time.Duration(corev1.DefaultTerminationGracePeriodSeconds) * time.Second
		if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
			grace = time.Duration(*s) * time.Second
		}
		reading, cancel := context.WithTimeout(ctx, grace+logPatience)
		defer cancel()
		lines := int64(logLines)
		o := &corev1.PodLogOptions{Container: container, TailLines: &lines, Follow: true}
		stream, err := l.r.pods.Pods(l.r.o.Namespace).GetLogs(j.d.Name, o).Stream(reading)
		if err != nil {
			return l.copyKept(reading, j, p, container, err)
		}
		defer func() { _ = stream.Close() }()
		l.begin(j.framework)
		defer l.finish(ctx, j.framework)
		l.release(ctx, j)
		data, truncated, err := tail(stream, l.r.o.LogBytes)
		data, truncated = l.best(ctx, p, container, data, truncated || err != nil)
		if err != nil && len(data) == 0 {
			return err
		}
		return l.r.o.Store.SaveLog(ctx, j.key(), data, truncated)
	}())
}

// copyKept saves the log from the machine's agent after Kubernetes couldn't return the log because of the error why. The pod may be gone.
func (l *logSaver) copyKept(ctx context.Context, j logJob, p *corev1.Pod, container string, why error) error {
	data, truncated, ok := l.kept(ctx, p, container)
	if !ok {
		return why
	}
	return l.r.o.Store.SaveLog(ctx, j.key(), data, truncated)
}

// terminated reports whether all containers of a pod have ended.
func terminated(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

var errNoLog = errors.New("nothing ran that could have written a log")

// copy saves the end of the log of a program that has ended.
func (l *logSaver) copy(ctx context.Context, j logJob) error {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	p := j.pod
	container := logContainer(p)
	if container == "" {
		return errNoLog
	}
	if _, truncated, err := l.r.o.Store.Log(ctx, j.key()); err == nil && !truncated {
		return nil // by the controller that led before this one
	}
	data, more, ok := l.kept(ctx, p, container)
	if ok {
		return l.r.o.Store.SaveLog(ctx, j.key(), data, more)
	}
	lines := int64(logLines)
	stream, err := l.r.pods.Pods(l.r.o.Namespace).GetLogs(j.d.Name, &corev1.PodLogOptions{Container: container, TailLines: &lines}).Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	data, truncated, err := tail(io.LimitReader(stream, logRead), l.r.o.LogBytes)
	if err != nil && len(data) == 0 {
		return err
	}
	return l.r.o.Store.SaveLog(ctx, j.key(), data, more || err != nil || partial(data, truncated) || len(data) == 0) // it may have been rotated away
}

// logContainer returns the container whose log is most useful: the container with the user's program or, if that never ran, the container that
// failed before it. It returns "" if no container ran.
func logContainer(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	best := ""
	for _, c := range p.Status.ContainerStatuses {
		if ranOnce(c) && (best == "" || c.Name == appName) {
			best = c.Name
		}
	}
	for _, c := range p.Status.InitContainerStatuses {
		if best == "" && ranOnce(c) {
			best = c.Name
		}
	}
	return best
}

func ranOnce(c corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil && !c.State.Terminated.StartedAt.IsZero()
}

// tail reads r to its end and returns the last n bytes.
func tail(r io.Reader, n int) (data []byte, truncated bool, err error) {
	buf := make([]byte, 32<<10)
	for {
		k, err := r.Read(buf)
		data = append(data, buf[:k]...)
		if len(data) > 2*n {
			data = append(data[:0], data[len(data)-n:]...)
			truncated = true
		}
		if err != nil {
			if len(data) > n {
				data, truncated = data[len(data)-n:], true
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return data, truncated, err
		}
	}
}

// keepLogs begins to save the logs of the pods that are removed with a Framework. It reports whether all of them are saved.
func (r *reconciler) keepLogs(f *v1.Framework) bool {
	ok := true
	for _, p := range r.cache.podsOf(f.Name) {
		if l := logOf(p); l != nil && p.DeletionTimestamp == nil && !r.logs.saved(f, machine.Deletion{Name: p.Name, UID: p.UID, Log: l}) {
			ok = false
		}
	}
	return ok
}

// logOf returns the attempt of a task to which a pod belongs, or nil if the pod doesn't belong to a task.
func logOf(p *corev1.Pod) *machine.LogOf {
	index, err1 := strconv.ParseInt(p.Labels[v1.LabelTaskIndex], 10, 32)
	attempt, err2 := strconv.ParseInt(p.Annotations[v1.AnnotationFrameworkAttempt], 10, 32)
	task, err3 := strconv.ParseInt(p.Annotations[v1.AnnotationTaskAttempt], 10, 32)
	if errors.Join(err1, err2, err3) != nil {
		return nil
	}
	return &machine.LogOf{Task: machine.Task{Role: p.Labels[v1.LabelTaskRole], Index: int32(index)}, Attempt: int32(attempt), TaskAttempt: int32(task)}
}
