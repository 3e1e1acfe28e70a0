// Package idempotency stores the responses to submissions with a key, so that any replica returns the same response to a repeated submission, even if
// the job has changed.
// In: a person, a key, a checksum of the submission. Out: a claim, which holds the response once it is known.
//
// A server writes the claim before it creates the job, and the response afterwards. If the server is killed in between, the claim contains no
// response. The server that gets the repeated submission must then find the job.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Life is how long a claim is stored.
const Life = 2 * time.Hour

// ErrOther is the error for a key that was used for another submission.
var ErrOther = errors.New("this Idempotency-Key was used for another submission")

const (
	fieldDigest = "digest"
	fieldAnswer = "answer"
)

// page is the page size for lists of claims.
const page = 500

// Store stores claims in Secrets of the namespace for people.
type Store struct {
	secrets typedv1.SecretInterface
	now     func() time.Time
}

// New returns a Store. If now is nil, it uses time.Now.
func New(client kubernetes.Interface, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{client.CoreV1().Secrets(v1.Namespace), now}
}

// Claim is a person's key with the submission.
type Claim struct {
	// Answer is the response to the submission, or "" if it isn't known yet.
	Answer string
	name   string
	uid    types.UID
}

// Claim creates a claim for a submission. If the person has already claimed the key, Claim returns the existing claim, or ErrOther if the key was used
// for another submission.
func (s *Store) Claim(ctx context.Context, user string, uid types.UID, key string, digest [sha256.Size]byte) (*Claim, error) {
	sum := sha256.Sum256([]byte(string(uid) + "\x00" + key))
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "submission-" + hex.EncodeToString(sum[:16]), Labels: map[string]string{v1.LabelPeople: v1.SecretSubmission, v1.LabelUser: user}},
		Data:       map[string][]byte{fieldDigest: []byte(hex.EncodeToString(digest[:]))},
	}
	for range 2 {
		made, err := s.secrets.Create(ctx, want, metav1.CreateOptions{})
		if err == nil {
			return &Claim{name: made.Name, uid: made.UID}, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("remember the submission: %w", err)
		}
		have, err := s.secrets.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue // it was deleted a moment ago
		case err != nil:
			return nil, fmt.Errorf("look for the submission of that key: %w", err)
		case string(have.Data[fieldDigest]) != string(want.Data[fieldDigest]):
			return nil, ErrOther
		}
		return &Claim{Answer: string(have.Data[fieldAnswer]), name: have.Name, uid: have.UID}, nil
	}
	return nil, errors.New("the submission with that key keeps changing")
}

// Done stores the response to a submission in its claim.
func (s *Store) Done(ctx context.Context, c *Claim, answer string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"stringData":{%q:%q}}`, c.uid, fieldAnswer, answer)
	if _, err := s.secrets.Patch(ctx, c.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("remember the answer of a submission: %w", err)
	}
	return nil
}

// Release deletes a claim, so that the key can be used again after a failed submission.
func (s *Store) Release(ctx context.Context, c *Claim) error {
	err := s.secrets.Delete(ctx, c.name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("forget a submission: %w", err)
	}
	return nil
}

// Tidy deletes claims that are older than Life.
func (s *Store) Tidy(ctx context.Context) error {
	o := metav1.ListOptions{LabelSelector: v1.LabelPeople + "=" + v1.SecretSubmission, Limit: page}
	for {
		list, err := s.secrets.List(ctx, o)
		if err != nil {
			return fmt.Errorf("list submissions: %w", err)
		}
		for i := range list.Items {
			if one := &list.Items[i]; s.now().Sub(one.CreationTimestamp.Time) > Life {
				if err := s.Release(ctx, &Claim{name: one.Name, uid: one.UID}); err != nil {
					return err
				}
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}
