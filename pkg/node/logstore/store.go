// Package logstore implements the program pai-logs, which stores the output of job containers longer than the kubelet. pai-logs runs on each machine.
// In: the kubelet's log folders, in which the kubelet rotates and removes files. Out: segments on the machine's disk, and an HTTP API that serves the
// logs and reports missing lines.
package logstore

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Limits limits the size and the age of stored logs.
type Limits struct {
	PerTask int64         // bytes of output of a container, with their times; the oldest are dropped
	Total   int64         // bytes on the disk, of all logs
	Age     time.Duration // time after which the log of a removed pod is deleted; 0: never
}

// segment returns the size at which a new segment begins. Old parts of a log are removed segment by segment.
func (l *Limits) segment() int64 { return min(max(l.PerTask/16, 1<<20), 64<<20) }

const (
	every   = time.Second // the kubelet rotates every few seconds at most
	workers = 2
)

// Store stores the logs of a machine.
type Store struct {
	pods, root, prefix string
	limits             Limits
	codec              *codec
	log                *slog.Logger
	now                func() time.Time
	step               time.Duration // between two checks while a request waits

	mu      sync.Mutex
	streams map[string]*stream // by uid/container
	told    map[string]string  // by uid/container: the last problem
	used    int64
}

// Options configures a Store.
type Options struct {
	Pods      string // the kubelet's folder, /var/log/pods
	Folder    string // the store's folder
	Namespace string // the namespace of the jobs
	Limits    Limits
	Log       *slog.Logger
	Now       func() time.Time
}

// Open opens a store. The store contains the logs of earlier runs.
func Open(o Options) (*Store, error) {
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, err
	}
	c, err := newCodec()
	if err != nil {
		return nil, err
	}
	s := &Store{pods: o.Pods, root: o.Folder, prefix: o.Namespace + "_", limits: o.Limits, codec: c, log: o.Log, now: o.Now, step: waitStep,
		streams: map[string]*stream{}, told: map[string]string{}}
	return s, s.remember()
}

// names matches valid UIDs and names of containers. Names must match because they become parts of paths.
var names = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// remember adds the logs of earlier runs. The pods of these logs may no longer exist.
func (s *Store) remember() error {
	uids, err := folders(s.root)
	if err != nil {
		return err
	}
	for _, uid := range uids {
		containers, err := folders(filepath.Join(s.root, uid))
		if err != nil {
			return err
		}
		for _, c := range containers {
			s.add(uid, c, "")
		}
	}
	return nil
}

// folders returns the subfolders whose names are valid UIDs or container names. folders skips links.
func folders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && names.MatchString(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// add adds the log of a container. from is the kubelet's folder of the log, or "" if the folder doesn't exist.
func (s *Store) add(uid, container, from string) {
	key := uid + "/" + container
	s.mu.Lock()
	x := s.streams[key]
	if x == nil {
		x = newStream(s.codec, &s.limits, from, filepath.Join(s.root, uid, container), s.now)
		s.streams[key] = x
	}
	s.mu.Unlock()
	if from != "" {
		x.reappear(from)
	}
}

// find returns the log of a container, or nil if the log doesn't exist. find also finds logs of new pods. The name "app" selects the user's
// container, which has another name in pods that another program created.
func (s *Store) find(uid, container string) *stream {
	if err := s.discover(); err != nil {
		s.problem("pods", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.streams[uid+"/"+container]; found != nil || container != "app" {
		return found
	}
	var only *stream
	for key, other := range s.streams {
		if strings.HasPrefix(key, uid+"/") {
			if only != nil {
				return nil
			}
			only = other
		}
	}
	return only
}

// uids returns the UIDs of the job pods whose logs are in the kubelet's folders or in the store.
func (s *Store) uids() map[string]bool {
	if err := s.discover(); err != nil {
		s.problem("pods", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]bool{}
	for key := range s.streams {
		uid, _, _ := strings.Cut(key, "/")
		out[uid] = true
	}
	return out
}

// discover adds the logs of all pods with a folder of the kubelet.
func (s *Store) discover() error {
	pods, err := os.ReadDir(s.pods)
	if err != nil {
		return err
	}
	for _, p := range pods {
		uid := p.Name()[strings.LastIndexByte(p.Name(), '_')+1:]
		if !p.IsDir() || !strings.HasPrefix(p.Name(), s.prefix) || !names.MatchString(uid) {
			continue
		}
		containers, err := folders(filepath.Join(s.pods, p.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, c := range containers {
			s.add(uid, c, filepath.Join(s.pods, p.Name(), c))
		}
	}
	return nil
}

// Run stores all logs until the context ends, and then closes them.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		s.Round(ctx)
		select {
		case <-ctx.Done():
			s.close()
			return nil
		case <-tick.C:
		}
	}
}

func (s *Store) close() {
	for _, x := range s.all() {
		x.close()
	}
}

type keyed struct {
	*stream
	key string
}

func (s *Store) all() []keyed {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []keyed
	for key, x := range s.streams {
		out = append(out, keyed{x, key})
	}
	slices.SortFunc(out, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	return out
}

// Round stores the new lines of all logs once, and removes old logs.
func (s *Store) Round(ctx context.Context) {
	if err := s.discover(); err != nil {
		s.problem("pods", err)
	}
	var g errgroup.Group
	g.SetLimit(workers)
	for _, x := range s.all() {
		if ctx.Err() != nil {
			break
		}
		if x.finished() {
			continue
		}
		g.Go(func() error {
			s.problem(x.key, x.ingest(false))
			return nil
		})
	}
	_ = g.Wait() // its functions return no error
	s.makeRoom()
}

// problem writes an error about a log to the program's own log. problem skips an error that equals the previous error of the same log.
func (s *Store) problem(key string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if text != "" && s.told[key] != text {
		s.log.Warn("a log can't be kept", "log", key, "err", text)
	}
	if s.told[key] = text; text == "" {
		delete(s.told, key)
	}
}
