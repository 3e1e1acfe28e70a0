package services

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// LogOptions selects the logs that Logs writes.
type LogOptions struct {
	Name string
	// Follow means that Logs continues until ctx ends. With Follow, Logs also includes later pods.
	Follow   bool
	Since    time.Duration // 0 means all
	Tail     int64         // lines per container; negative means all
	Previous bool          // the logs of the containers before their last restart
	Out      io.Writer
	// Problem receives an error for each container with an unreadable log.
	Problem func(error)
}

// Logs writes the logs of a service's pods. Each line begins with the name of the pod.
func (p *Platform) Logs(ctx context.Context, o LogOptions) error {
	t, err := p.find(ctx, o.Name)
	if err != nil {
		return err
	}
	sources, err := p.sources(ctx, t)
	if err != nil {
		return err
	}
	if len(sources) == 0 && !o.Follow {
		return hint.Errorf("see: paictl service status -n "+o.Name, "%s has no pods", o.Name)
	}
	l := &logs{p: p, o: o}
	if !o.Follow {
		l.all(ctx, sources)
		return context.Cause(ctx)
	}
	return l.follow(ctx, t)
}

// find returns the service with the given name and its release. The namespace comes from the inventory, or from the configuration if the inventory
// doesn't contain the service. find returns an error if the service doesn't run.
func (p *Platform) find(ctx context.Context, name string) (*target, error) {
	left, err := readInventory(ctx, p.Client)
	if err != nil {
		return nil, err
	}
	t := &target{name: name}
	if e, ok := left[name]; ok {
		t.namespace = e.Namespace
	} else {
		d, err := p.Load(ctx)
		if err != nil {
			return nil, err
		}
		s, err := d.named(name)
		if err != nil {
			return nil, err
		}
		name = s.Name
		t.name, t.namespace = s.Name, s.Namespace
	}
	if t.release, err = p.Releases.Get(ctx, t.namespace, name); err != nil {
		return nil, err
	}
	if t.release == nil {
		return nil, hint.Errorf("start it with: paictl service start -n "+name, "%s does not run", name)
	}
	return t, nil
}

type source struct {
	namespace, pod, container string
	prefix                    string
}

// sources returns the logs of a service's started containers, sorted by name.
func (p *Platform) sources(ctx context.Context, t *target) ([]source, error) {
	pods, err := p.podsOf(ctx, t)
	if err != nil {
		return nil, err
	}
	var out []source
	for i := range pods {
		out = append(out, sourcesOf(&pods[i])...)
	}
	slices.SortFunc(out, func(a, b source) int { return strings.Compare(a.prefix, b.prefix) })
	return slices.Compact(out), nil
}

func sourcesOf(pod *corev1.Pod) []source {
	var out []source
	status := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, c := range status {
		if c.State.Waiting != nil && c.RestartCount == 0 {
			continue // it hasn't run yet
		}
		s := source{namespace: pod.Namespace, pod: pod.Name, container: c.Name, prefix: pod.Name}
		if len(status) > 1 {
			s.prefix += "/" + c.Name
		}
		out = append(out, s)
	}
	return out
}

// logs writes the lines of many containers to one writer.
type logs struct {
	p *Platform
	o LogOptions

	mu  sync.Mutex
	err error // of writing
}

func (l *logs) all(ctx context.Context, sources []source) {
	var lines []logapi.Line
	_ = each(sources, defaultParallel, func(s source) error {
		last := ""
		err := l.read(ctx, s, l.options(s), func(x logapi.Line) {
			if x.Stamp == "" { // the rest of a long line that was split must follow its beginning
				x.Stamp = last
			}
			last, x.Text = x.Stamp, s.show(x)
			l.mu.Lock()
			defer l.mu.Unlock()
			lines = append(lines, x)
		})
		l.complain(ctx, s, err)
		return nil
	})
	slices.SortStableFunc(lines, func(a, b logapi.Line) int { return strings.Compare(a.Stamp, b.Stamp) })
	for _, x := range lines {
		l.write(x.Text)
	}
}

func (l *logs) options(s source) *corev1.PodLogOptions {
	o := &corev1.PodLogOptions{Container: s.container, Timestamps: true, Previous: l.o.Previous}
	if l.o.Tail >= 0 {
		o.TailLines = &l.o.Tail
	}
	if l.o.Since > 0 {
		o.SinceSeconds = ptr(max(int64(l.o.Since.Seconds()), 1))
	}
	return o
}

// lookAgain is the interval between checks for new pods and restarted containers while logs are followed.
const lookAgain = 2 * time.Second

// follow writes lines as they arrive, until ctx ends.
func (l *logs) follow(ctx context.Context, t *target) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	seen := map[source]bool{}
	for first := true; ; first = false {
		sources, err := l.p.sources(ctx, t)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for _, s := range sources {
			if seen[s] {
				continue
			}
			seen[s] = true
			o := l.options(s)
			o.Follow = true
			if !first {
				o.TailLines, o.SinceSeconds = nil, nil // a new container: none of its lines was shown
			}
			wg.Go(func() { l.stay(ctx, s, o) })
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// resumptions is the maximum number of times that an interrupted log is reopened without a new line.
const resumptions = 5

// stay follows a log until the container exits. If the connection breaks, stay resumes after the last printed line.
func (l *logs) stay(ctx context.Context, s source, o *corev1.PodLogOptions) {
	last := ""
	for failures := 0; ; {
		err := l.read(ctx, s, o, func(x logapi.Line) {
			if x.Stamp == "" || x.Stamp > last { // the API's "since" doesn't support fractions of a second
				l.write(s.show(x))
				last, failures = cmp.Or(x.Stamp, last), 0
			}
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		if failures++; failures > resumptions || apierrors.IsNotFound(err) {
			l.complain(ctx, s, err)
			return
		}
		if at, err := time.Parse(time.RFC3339Nano, last); err == nil {
			o.TailLines, o.SinceSeconds, o.SinceTime = nil, nil, &metav1.Time{Time: at}
		}
	}
}

func (l *logs) read(ctx context.Context, s source, o *corev1.PodLogOptions, line func(logapi.Line)) error {
	body, err := l.p.Client.CoreV1().Pods(s.namespace).GetLogs(s.pod, o).Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	return logapi.Read(body, true, func(x logapi.Line) error {
		line(x)
		return nil
	})
}

// show returns a formatted line with a prefix.
func (s source) show(x logapi.Line) []byte {
	return slices.Concat([]byte(s.prefix+"  "), bytes.TrimRight(x.Text, "\r"), []byte("\n"))
}

func (l *logs) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.o.Out.Write(line)
	}
}

func (l *logs) complain(ctx context.Context, s source, err error) {
	if err != nil && ctx.Err() == nil && l.o.Problem != nil {
		l.o.Problem(fmt.Errorf("read the log of %s: %w", s.prefix, err))
	}
}
