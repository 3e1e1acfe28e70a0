package watch_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// server is an API server with the ConfigMaps of one namespace: it lists them in pages, and streams their changes.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	version int
	objects map[string]*corev1.ConfigMap
	events  []metav1.WatchEvent // the index of an event is its version
	first   int                 // the first version whose events are kept; requests for earlier versions fail with 410
	more    chan struct{}       // closed at the next event
	refuse  map[string]int      // the status of the next responses, by request: list or watch
	asked   map[string]int      // how many requests arrived, by request
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{objects: map[string]*corev1.ConfigMap{}, events: []metav1.WatchEvent{{}}, more: make(chan struct{}), refuse: map[string]int{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *server) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: s.URL, QPS: -1})
	require.NoError(t, err)
	return c
}

// set creates or changes an object.
func (s *server) set(name, uid, value string) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "a", UID: types.UID(uid), ResourceVersion: strconv.Itoa(s.version)}, Data: map[string]string{"v": value}}
	kind := "ADDED"
	if s.objects[name] != nil {
		kind = "MODIFIED"
	}
	s.objects[name] = o
	s.record(kind, o)
	return o
}

func (s *server) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o := s.objects[name].DeepCopy()
	o.ResourceVersion = strconv.Itoa(s.version)
	o.Data["v"] += " last"
	delete(s.objects, name)
	s.record("DELETED", o)
}

func (s *server) record(kind string, o *corev1.ConfigMap) {
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw, _ = json.Marshal(o)
	s.events = append(s.events, e)
	close(s.more)
	s.more = make(chan struct{})
}

// compact drops all events, so that requests for them fail.
func (s *server) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = s.version + 1
}

// restore brings back the objects and the version of an earlier state.
func (s *server) restore(version int, objects map[string]*corev1.ConfigMap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.objects, s.events = version, objects, s.events[:version+1]
}

// refuses makes the server respond to the requests of a kind with a status, or as usual if the status is 0.
func (s *server) refuses(what string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[what] = status
}

func (s *server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	what := "list"
	if query.Get("watch") != "" {
		what = "watch"
	}
	s.asked[what]++
	w.Header().Set("Content-Type", "application/json")
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	status := s.refuse[what]
	if status == 0 && what == "watch" && from+1 < s.first {
		status = http.StatusGone
	}
	switch {
	case status != 0:
		reason := map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusGone: metav1.StatusReasonExpired}[status]
		s.mu.Unlock()
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(status), Reason: reason, Message: "refused " + what})
	case what == "watch":
		s.mu.Unlock()
		s.stream(w, r, from)
	default:
		defer s.mu.Unlock()
		s.page(w, query.Get("limit"), query.Get("continue"))
	}
}

// page writes at most two objects, because a page may contain fewer objects than were requested.
func (s *server) page(w http.ResponseWriter, limit, after string) {
	list := corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{Kind: "ConfigMapList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if name <= after {
			continue
		}
		if len(list.Items) == 2 && limit != "" {
			list.Continue = list.Items[1].Name
			break
		}
		list.Items = append(list.Items, *s.objects[name])
	}
	_ = json.NewEncoder(w).Encode(list)
}

// stream writes the events after a version.
func (s *server) stream(w http.ResponseWriter, r *http.Request, from int) {
	_ = http.NewResponseController(w).Flush()
	for next := from + 1; ; next++ {
		s.mu.Lock()
		for next >= len(s.events) {
			more := s.more
			s.mu.Unlock()
			select {
			case <-r.Context().Done():
				return
			case <-more:
			}
			s.mu.Lock()
		}
		e := s.events[next]
		s.mu.Unlock()
		if err := json.NewEncoder(w).Encode(e); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// text returns a short form of a value, for messages of tests.
func text(name, uid, value string) string { return fmt.Sprintf("%s %s %s", name, uid, value) }
