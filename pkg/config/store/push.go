package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/version"
)

// Entry contains the author and the message of a push for the history.
type Entry struct {
	By      string // user@host
	Message string
}

// MaxMessage is the maximum length of a message in bytes. The history must have room for ten messages.
const MaxMessage = 1000

// Push writes a draft as a new revision. If another user has pushed since the draft was made, it changes nothing and returns ErrChanged. If the
// draft contains no changes, Push returns the current revision.
func (s *Store) Push(ctx context.Context, d *Draft, e Entry) (Revision, error) {
	if len(d.Changes) == 0 && !d.First() {
		return *d.Head, nil
	}
	if len(e.Message) > MaxMessage {
		return Revision{}, fmt.Errorf("the message has %d bytes; the limit is %d", len(e.Message), MaxMessage)
	}
	r := Revision{Number: 1, ClusterID: d.Cluster.Services.Cluster.Common.ClusterID, Time: s.now(), By: e.By,
		Message: e.Message, Source: d.source, Version: version.Version, Files: []string{}}
	for _, c := range d.Changes {
		r.Files = append(r.Files, c.File)
	}
	var history []Revision
	if d.First() {
		if err := EnsureNamespace(ctx, s.client); err != nil {
			return Revision{}, err
		}
	} else {
		r.Number = d.Head.Number + 1
		history = append([]Revision{*d.Head}, d.objects.history...)
		history = history[:min(len(history), Keep-1)]
	}
	history, err := s.prepare(ctx, d, &r, history)
	if err != nil {
		return Revision{}, err
	}
	return s.commit(ctx, d, r, history)
}

// prepare writes the objects of the new revision that readers ignore before the commit: the new credentials, and a ConfigMap that keeps the current
// revision. It returns the part of the history that still fits.
func (s *Store) prepare(ctx context.Context, d *Draft, r *Revision, history []Revision) ([]Revision, error) {
	g, ctx := errgroup.WithContext(ctx)
	if !d.First() {
		g.Go(func() error {
			if err := s.keep(ctx, archive(d.objects.config, d.Head.Number)); err != nil {
				return fmt.Errorf("keep revision %d: %w", d.Head.Number, err)
			}
			return nil
		})
	}
	kept := history
	g.Go(func() (err error) {
		kept, err = s.writeCredentials(ctx, d, r, history)
		return err
	})
	err := g.Wait()
	return kept, err
}

// keep writes an earlier revision into a separate ConfigMap. Concurrent pushes write an equal object. If a different object exists, keep replaces it,
// because it belongs to a deleted configuration whose revisions had the same numbers.
func (s *Store) keep(ctx context.Context, want *corev1.ConfigMap) error {
	api := s.client.CoreV1().ConfigMaps(want.Namespace)
	_, err := api.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := api.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil || equality.Semantic.DeepEqual(have.Annotations, want.Annotations) && equality.Semantic.DeepEqual(have.Data, want.Data) {
		return err
	}
	// The object is immutable, so delete the object and create a new one.
	err = api.Delete(ctx, want.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &have.UID}})
	if err == nil || apierrors.IsNotFound(err) {
		_, err = api.Create(ctx, want, metav1.CreateOptions{})
	}
	return err
}

// writeCredentials adds the credentials of the draft to the Secret. It writes nothing if the Secret already contains the same credentials. It
// returns the part of the history that still fits.
func (s *Store) writeCredentials(ctx context.Context, d *Draft, r *Revision, history []Revision) ([]Revision, error) {
	if d.amends {
		r.Credentials = d.Head.Credentials
		return history, nil
	}
	if d.after.parts.empty() {
		return history, nil
	}
	if !d.First() {
		if now, err := readEntry(d.objects.secret, *d.Head); err == nil && now.equal(d.after.parts) {
			r.Credentials = d.Head.Credentials
			return history, nil
		}
	}
	name, value, err := newEntry(r.Number, d.after.parts)
	if err != nil {
		return nil, err
	}
	r.Credentials = name
	have, kept := d.objects.secret, history
	// Another push may change the Secret at the same time. Both pushes may write to the Secret, because the ConfigMap determines which push
	// succeeds.
	err = retry.RetryOnConflict(contention, func() (err error) {
		var want *corev1.Secret
		if want, kept, err = withEntry(have, name, value, r.Number-1, history); err != nil {
			return err
		}
		if err = s.putSecret(ctx, have, want); !apierrors.IsConflict(err) {
			return err
		}
		now, getErr := s.get(ctx)
		switch {
		case getErr != nil:
			return getErr
		case !sameObject(now.config, d.objects.config):
			return errLost // the other push has succeeded
		}
		have = now.secret
		return err
	})
	if errors.Is(err, errLost) {
		return nil, s.explainLoss(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("write Secret %s: %w", SecretName, err)
	}
	return kept, nil
}

// contention determines how often and how long a push retries if another push changes the Secret.
var contention = wait.Backoff{Steps: 20, Duration: 10 * time.Millisecond, Factor: 1.3, Jitter: 0.5}

var errLost = errors.New("lost")

func sameObject(a, b *corev1.ConfigMap) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// putSecret creates or updates the Secret. It returns a conflict if another program has created or deleted the Secret since it was read.
func (s *Store) putSecret(ctx context.Context, have, want *corev1.Secret) error {
	api := s.client.CoreV1().Secrets(kube.SystemNamespace)
	var err error
	if have == nil {
		_, err = api.Create(ctx, want, metav1.CreateOptions{})
	} else {
		_, err = api.Update(ctx, want, metav1.UpdateOptions{})
	}
	if have == nil && apierrors.IsAlreadyExists(err) || have != nil && apierrors.IsNotFound(err) {
		return apierrors.NewConflict(corev1.Resource("secrets"), SecretName, err)
	}
	return err
}

// commit writes the ConfigMap. The old revision is valid until the write succeeds.
func (s *Store) commit(ctx context.Context, d *Draft, r Revision, history []Revision) (Revision, error) {
	want, err := encode(r, d.after.shown, history)
	if err != nil {
		return Revision{}, err
	}
	api := s.client.CoreV1().ConfigMaps(kube.SystemNamespace)
	var done *corev1.ConfigMap
	if d.First() {
		done, err = api.Create(ctx, want, metav1.CreateOptions{})
	} else {
		replace(d.objects.config, want)
		done, err = api.Update(ctx, want, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || !d.First() && apierrors.IsNotFound(err) {
		return Revision{}, s.explainLoss(ctx)
	}
	if err != nil {
		return Revision{}, fmt.Errorf("write ConfigMap %s: %w", ConfigMapName, err)
	}
	r.UID = string(done.UID)
	s.forget(ctx, r, history)
	return r, nil
}

// replace prepares want as an update of the object have. It keeps the labels and annotations of other programs.
func replace(have, want *corev1.ConfigMap) {
	want.ResourceVersion, want.UID = have.ResourceVersion, have.UID
	for k, v := range have.Labels {
		if _, ours := want.Labels[k]; !ours {
			want.Labels[k] = v
		}
	}
	for k, v := range have.Annotations {
		if !strings.HasPrefix(k, prefix) {
			want.Annotations[k] = v
		}
	}
}

// explainLoss returns an error that describes the successful push after another push has failed.
func (s *Store) explainLoss(ctx context.Context) error {
	winner, err := s.Current(ctx)
	if err != nil {
		return ErrChanged
	}
	return hint.Wrap(fmt.Errorf("%w, and nothing was written: %s", ErrChanged, describe(winner)), remedyStale)
}

// forget deletes the ConfigMaps of revisions that are no longer in the history. After a failure, the next push deletes them, and no reader uses
// them until then.
func (s *Store) forget(ctx context.Context, r Revision, history []Revision) {
	oldest := r.Number
	if len(history) > 0 {
		oldest = slices.MinFunc(history, func(a, b Revision) int { return a.Number - b.Number }).Number
	}
	if oldest <= 1 {
		return
	}
	_ = s.client.CoreV1().ConfigMaps(kube.SystemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: labelManagedBy + "=" + managedBy + "," + annRevision + "<" + strconv.Itoa(oldest)})
}
