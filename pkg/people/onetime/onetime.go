// Package onetime stores values for a short time and for one use: codes of sign-ins in progress, and tickets of browsers. In: a kind, an id that
// doesn't reveal the code, values. Out: the values, which only one reader gets. The values are stored in Secrets of the namespace pai-people, so that
// every replica can read them.
package onetime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Errors of the package. All other errors wrap people.ErrUnavailable.
var (
	// ErrNone means that a code was used, has expired, or never existed.
	ErrNone = errors.New("the code is not valid, was used, or has expired")
	// ErrMany means that too many sign-ins are in progress.
	ErrMany = errors.New("too many sign-ins are under way")
	// ErrChanged means that a Thing has changed since it was read.
	ErrChanged = errors.New("it has changed since it was read")
)

// Kind is the kind of a Thing.
type Kind string

const (
	// Code is the code that a browser passes to paictl at the end of a sign-in.
	Code Kind = "code"
	// Device is the sign-in of a program on a machine without a browser.
	Device Kind = "device"
	// Ticket gives a browser access to a proxied page or to a task of a job.
	Ticket Kind = "ticket"
)

// Entry is the stored data of a one-time code.
type Entry struct {
	Kind    Kind
	ID      string
	Values  map[string]string
	Expires time.Time

	uid     *metav1.Preconditions
	version string
}

const keyExpires = "expires"

// Store stores Things.
type Store struct {
	core kubernetes.Interface
	now  func() time.Time
}

// Open returns a Store for a cluster. It sends no requests. If now is nil, the Store uses time.Now.
func Open(config *rest.Config, now func() time.Time) (*Store, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	if now == nil {
		now = time.Now
	}
	return &Store{core, now}, nil
}

// ID returns an id for a code. The id doesn't reveal the code.
func ID(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:20])
}

func selector(kind Kind) string {
	return v1.LabelPeople + "=" + v1.SecretOnce + "," + labelKind + "=" + string(kind)
}

// labelKind is the label of a Secret with the kind of the Thing.
const labelKind = "paictl.openpai.org/once"

func (s *Store) secret(t *Entry) *corev1.Secret {
	data := map[string]string{}
	maps.Copy(data, t.Values)
	data[keyExpires] = t.Expires.UTC().Format(time.RFC3339Nano)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: v1.OnceName(string(t.Kind), t.ID), Namespace: v1.Namespace, ResourceVersion: t.version,
			Labels: map[string]string{v1.LabelPeople: v1.SecretOnce, labelKind: string(t.Kind)}},
		StringData: data,
	}
}

func (s *Store) valid(of *corev1.Secret) bool {
	until, err := time.Parse(time.RFC3339Nano, string(of.Data[keyExpires]))
	return err == nil && s.now().Before(until)
}

// Get reads a Thing. It returns ErrNone if the Thing doesn't exist or has expired.
func (s *Store) Get(ctx context.Context, kind Kind, id string) (*Entry, error) {
	have, err := s.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.OnceName(string(kind), id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && !s.valid(have) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, away("read a code", err)
	}
	t := &Entry{Kind: kind, ID: id, Values: values(have), uid: &metav1.Preconditions{UID: &have.UID, ResourceVersion: &have.ResourceVersion}, version: have.ResourceVersion}
	t.Expires, _ = time.Parse(time.RFC3339Nano, string(have.Data[keyExpires])) // valid has parsed it
	return t, nil
}

// values returns the values that Put stored in a Secret.
func values(of *corev1.Secret) map[string]string {
	out := map[string]string{}
	for k, v := range of.Data {
		out[k] = string(v)
	}
	delete(out, keyExpires)
	return out
}

// Change writes a changed Thing that Get has returned. It returns ErrChanged if another caller has changed or removed the Thing since.
func (s *Store) Change(ctx context.Context, t *Entry) error {
	_, err := s.core.CoreV1().Secrets(v1.Namespace).Update(ctx, s.secret(t), metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ErrChanged
	}
	return away("write a code", err)
}

// Use removes a Thing that Get has returned. If several callers use the same Thing, one caller succeeds, and the others get ErrNone.
func (s *Store) Use(ctx context.Context, t *Entry) error {
	err := s.core.CoreV1().Secrets(v1.Namespace).Delete(ctx, v1.OnceName(string(t.Kind), t.ID), metav1.DeleteOptions{Preconditions: t.uid})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return ErrNone
	}
	return away("delete a code", err)
}

// Sweep deletes expired Things.
func (s *Store) Sweep(ctx context.Context) error {
	for _, kind := range []Kind{Code, Device, Ticket} {
		list, err := s.core.CoreV1().Secrets(v1.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(kind)})
		if err != nil {
			return away("list codes", err)
		}
		for i := range list.Items {
			have := &list.Items[i]
			if s.valid(have) {
				continue
			}
			err := s.core.CoreV1().Secrets(v1.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID}})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return away("delete a code", err)
			}
		}
	}
	return nil
}

// sweeping is the interval between two deletions of expired Things.
const sweeping = time.Minute

// Tend calls Sweep regularly until ctx ends, and calls failed with each error. Only one replica runs Tend.
func (s *Store) Tend(ctx context.Context, failed func(error)) {
	for {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweeping):
		}
	}
}

func away(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", people.ErrUnavailable, what, err)
}
