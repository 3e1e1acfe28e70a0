package kubelet

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"time"
)

// newServer serves the part of a kubelet's API that returns logs. The API server of kubetest accepts any certificate of a kubelet.
func newServer(k *Kubelet) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLog)
	server := httptest.NewUnstartedServer(mux)
	server.StartTLS()
	return server
}

func (k *Kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	pod, container := r.PathValue("pod"), r.PathValue("container")
	k.mu.Lock()
	of := k.names[r.PathValue("namespace")+"/"+pod]
	k.mu.Unlock()
	if of == nil || of.pod.Spec.Containers[0].Name != container || !of.begun.Load() {
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: ContainerCreating", container, pod), http.StatusBadRequest)
		return
	}
	asked, err := parse(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked.send(w, r, of.log)
}

// asked specifies the part of a log that a client requests.
type asked struct {
	follow, timestamps bool
	tail               int // -1: all lines
	since              time.Time
}

// parse parses the options of a request. It returns an error for options that this kubelet doesn't support.
func parse(q url.Values) (asked, error) {
	a := asked{tail: -1}
	for key := range q {
		value, err := q.Get(key), error(nil)
		switch key {
		case "follow":
			a.follow, err = strconv.ParseBool(value)
		case "timestamps":
			a.timestamps, err = strconv.ParseBool(value)
		case "tailLines":
			a.tail, err = strconv.Atoi(value)
		case "sinceTime":
			a.since, err = time.Parse(time.RFC3339, value)
		case "sinceSeconds":
			var seconds int
			seconds, err = strconv.Atoi(value)
			a.since = time.Now().Add(-time.Duration(seconds) * time.Second)
		default:
			err = errors.New("this kubelet doesn't know it")
		}
		if err != nil {
			return a, fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	return a, nil
}

// send sends the selected lines of a log. If the client follows the log, it then sends new lines until the log ends.
func (a asked) send(w http.ResponseWriter, r *http.Request, l *log) {
	sent := 0
	if lines, _, _ := l.from(0); a.tail >= 0 {
		sent = max(0, len(lines)-a.tail)
	}
	for {
		lines, over, more := l.from(sent)
		sent += len(lines)
		for _, one := range lines {
			a.write(w, one)
		}
		_ = http.NewResponseController(w).Flush() // if the client disconnects, its context ends
		if over || !a.follow {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func (a asked) write(w io.Writer, one line) {
	text := one.text
	if one.at.Before(a.since) {
		return
	}
	if a.timestamps {
		text = one.at.UTC().Format("2006-01-02T15:04:05.000000000Z07:00") + " " + text
	}
	_, _ = io.WriteString(w, text) // if the client disconnects, its context ends
}
