package controller

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// LogReader reads logs from the agent that keeps the logs of a machine.
type LogReader interface {
	Get(ctx context.Context, node, uid, container string, query url.Values) (*http.Response, error)
}

// kept reads the end of a log from the agent of the machine. If the agent doesn't return the log, ok is false, and truncated reports whether the
// agent might still have it. The kubelet isn't enough, because it has only the output since it last rotated the log file, and this may be empty.
func (l *logSaver) kept(ctx context.Context, p *corev1.Pod, container string) (data []byte, truncated, ok bool) {
	if l.r.o.Logs == nil || p.Spec.NodeName == "" {
		return nil, false, false
	}
	query := url.Values{"tail": {strconv.Itoa(logLines)}, "times": {"false"}}
	resp, err := l.r.o.Logs.Get(ctx, p.Spec.NodeName, string(p.UID), container, query)
	if err != nil {
		l.r.o.Log.V(1).Info("the log is read from the kubelet", "pod", p.Name, "reason", err.Error())
		return nil, !errors.Is(err, logapi.ErrNoAgent) && !errors.Is(err, logapi.ErrNoLog), false
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	data, truncated, err = tail(io.LimitReader(resp.Body, logRead), l.r.o.LogBytes)
	if err != nil {
		return nil, true, false
	}
	silent := resp.Header.Get(logapi.HeaderEnd) == "0" && resp.Header.Get(logapi.HeaderGaps) == "0"
	return data, partial(data, truncated), len(data) > 0 || silent
}

// partial reports whether the log may have more lines than data contains.
func partial(data []byte, truncated bool) bool {
	return truncated || bytes.Count(data, []byte("\n")) >= logLines
}

// best returns the end of a log for the archive, from the agent or the kubelet. An empty log that comes only from the kubelet isn't marked as
// complete, because there may have been lines before.
func (l *logSaver) best(ctx context.Context, p *corev1.Pod, container string, data []byte, truncated bool) ([]byte, bool) {
	better, cut, ok := l.kept(ctx, p, container)
	if ok {
		return better, cut
	}
	return data, cut || partial(data, truncated) || len(data) == 0
}
