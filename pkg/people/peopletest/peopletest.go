// Package peopletest provides an API server in memory for tests of people and tokens. In: the initial objects. Out: a configuration for clients that
// get, list, create, update and delete Users, Groups and Secrets. The server doesn't support watches.
package peopletest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// API is an API server that stores objects by their URL path. It implements http.RoundTripper for its clients.
type API struct {
	t       testing.TB
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
}

// New returns an API that holds the given users.
func New(t testing.TB, users ...*v1.User) *API {
	t.Helper()
	a := &API{t: t, objects: map[string]*unstructured.Unstructured{}}
	for _, u := range users {
		a.Put(u)
	}
	return a
}

// User returns a person without a password who is in the given groups.
func User(name string, groups ...string) *v1.User {
	return &v1.User{TypeMeta: metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: v1.KindUser},
		ObjectMeta: metav1.ObjectMeta{Name: v1.ObjectName(name)}, Spec: v1.UserSpec{Name: name, Groups: groups}}
}

// Put creates or replaces a User or a Group.
func (a *API) Put(o runtime.Object) {
	a.t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(a.t, err)
	u := &unstructured.Unstructured{Object: m}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.put("/apis/"+u.GetAPIVersion()+"/"+strings.ToLower(u.GetKind())+"s", u)
}

// put stores an object with a new version. A new object gets a UID. An existing object keeps its UID.
func (a *API) put(resource string, u *unstructured.Unstructured) *unstructured.Unstructured {
	at := resource + "/" + u.GetName()
	a.version++
	u.SetResourceVersion(strconv.Itoa(a.version))
	if was := a.objects[at]; was != nil {
		u.SetUID(was.GetUID())
		u.SetCreationTimestamp(was.GetCreationTimestamp())
	} else {
		u.SetUID(types.UID("uid-" + u.GetResourceVersion()))
		u.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(a.version), 0)))
	}
	a.objects[at] = u
	return u
}

// Config returns a client configuration that sends requests to the API without a network.
func (a *API) Config() *rest.Config {
	return &rest.Config{Host: "http://api.invalid", Transport: a, QPS: -1}
}

// RoundTrip implements http.RoundTripper.
func (a *API) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sent unstructured.Unstructured
	if r.Method == http.MethodPost || r.Method == http.MethodPut {
		if err := json.NewDecoder(r.Body).Decode(&sent.Object); err != nil {
			return nil, err
		}
	}
	have := a.objects[r.URL.Path]
	none := apierrors.NewNotFound(schema.GroupResource{}, path.Base(r.URL.Path))
	switch {
	case r.Method == http.MethodPost && a.objects[path.Join(r.URL.Path, sent.GetName())] != nil:
		return status(apierrors.NewAlreadyExists(schema.GroupResource{}, sent.GetName())), nil
	case r.Method == http.MethodPost:
		return answer(http.StatusCreated, a.put(r.URL.Path, &sent).Object), nil
	case r.Method == http.MethodGet && have != nil:
		return answer(http.StatusOK, have.Object), nil
	case r.Method == http.MethodGet && isList(r.URL.Path):
		return a.list(r)
	case have == nil:
		return status(none), nil
	case r.Method == http.MethodPut && sent.GetResourceVersion() != have.GetResourceVersion():
		return status(apierrors.NewConflict(schema.GroupResource{}, have.GetName(), nil)), nil
	case r.Method == http.MethodPut:
		return answer(http.StatusOK, a.put(path.Dir(r.URL.Path), &sent).Object), nil
	case r.Method == http.MethodDelete:
		delete(a.objects, r.URL.Path)
		return answer(http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}), nil
	}
	return status(apierrors.NewMethodNotSupported(schema.GroupResource{}, r.Method)), nil
}

func isList(at string) bool {
	return slices.Contains([]string{"users", "groups", "secrets"}, path.Base(at))
}

func (a *API) list(r *http.Request) (*http.Response, error) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	items := []any{}
	for at, u := range a.objects {
		if path.Dir(at) == r.URL.Path && selector.Matches(labels.Set(u.GetLabels())) {
			items = append(items, u.Object)
		}
	}
	return answer(http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": items}), nil
}

func status(err *apierrors.StatusError) *http.Response {
	s := err.Status()
	s.APIVersion, s.Kind = "v1", "Status"
	return answer(int(s.Code), s)
}

func answer(code int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // decoded values can always be encoded
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text))}
}
