package barrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/openpai/paictl/pkg/node/podapi"
)

// Client reads a ConfigMap from an API server.
type Client struct {
	API       *podapi.API
	Namespace string
	Name      string // the name of the ConfigMap
}

// InCluster returns a client that uses the environment and the files that the kubelet adds to every container.
func InCluster(getenv func(string) string, folder, namespace, name string) (*Client, error) {
	api, err := podapi.InCluster(getenv, folder, "pai-runtime")
	if err != nil {
		return nil, err
	}
	return &Client{API: api, Namespace: namespace, Name: name}, nil
}

// refusal reports whether the API server rejected the request. A retry then helps only if the permission is still being
// created.
func refusal(err error) bool {
	var status *podapi.StatusError
	var answer *answerError
	code := 0
	switch {
	case errors.As(err, &status):
		code = status.Code
	case errors.As(err, &answer):
		code = answer.code
	}
	return code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound
}

func (*Client) name() string { return "the API server" }

func (c *Client) close() { c.API.Close() }

// event is an event of a watch.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Message    string            `json:"message"` // the message of an ERROR
		Code       int               `json:"code"`
		BinaryData map[string][]byte `json:"binaryData"`
	} `json:"object"`
}

// maxEvent is the maximum size of one event. A ConfigMap has at most 1 MiB and is encoded in base64.
const maxEvent = 4 << 20

// watch calls found for each version of the peers in the ConfigMap, starting with the current version. If the connection is
// silently lost, watch returns soon after the period.
func (c *Client) watch(ctx context.Context, period time.Duration, opened func(), found func([]byte) bool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, period+10*time.Second)
	defer cancel()
	query := url.Values{
		"watch":         {"true"},
		"fieldSelector": {"metadata.name=" + c.Name},
		// Read from the API server's cache instead of etcd, because a thousand tasks may send this request at once.
		"resourceVersion": {"0"},
		"timeoutSeconds":  {strconv.Itoa(int(period.Seconds()))},
	}
	res, err := c.API.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(c.Namespace)+"/configmaps?"+query.Encode())
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	opened()
	body := &io.LimitedReader{R: res.Body}
	d := json.NewDecoder(body)
	for {
		body.N = maxEvent
		var e event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("watch: %w", err)
		case e.Type == "ERROR":
			return false, &podapi.StatusError{Code: e.Object.Code, Message: e.Object.Message}
		case e.Type == "DELETED":
			continue
		}
		if data := e.Object.BinaryData[Key]; len(data) > 0 && found(data) {
			return true, nil
		}
	}
}
