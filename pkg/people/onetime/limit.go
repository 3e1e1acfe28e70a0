package onetime

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// Limit limits the number of Things of a kind. All is the maximum in total. Each is the maximum with the same value of Key.
type Limit struct {
	All  int
	Key  string
	Each int
	// Drop reports whether a Thing with these values may be removed when too many Things exist. The oldest Thing with the most frequent value is
	// removed. So a few users who begin many sign-ins don't block all others. If Drop is nil, no Thing is removed.
	Drop func(values map[string]string) bool
}

// Put stores a new Thing. It returns ErrMany if too many unexpired Things of the same kind exist.
func (s *Store) Put(ctx context.Context, t *Entry, l Limit) error {
	list, err := s.core.CoreV1().Secrets(v1.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(t.Kind)})
	if err != nil {
		return away("list codes", err)
	}
	if err := s.room(ctx, list.Items, t, l); err != nil {
		return err
	}
	made, err := s.core.CoreV1().Secrets(v1.Namespace).Create(ctx, s.secret(t), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return ErrChanged
	}
	if err != nil {
		return away("write a code", err)
	}
	return s.fits(ctx, made, t.Kind, l)
}

// fits deletes a new Secret if it exceeds the limit, because several concurrent calls may have passed room.
func (s *Store) fits(ctx context.Context, made *corev1.Secret, kind Kind, l Limit) error {
	list, err := s.core.CoreV1().Secrets(v1.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(kind)})
	if err != nil {
		return away("list codes", err)
	}
	version, err := strconv.ParseUint(made.ResourceVersion, 10, 64)
	if err != nil {
		return away("read the version of a code", err)
	}
	all, same := 0, 0
	for i := range list.Items {
		have := &list.Items[i]
		if n, err := strconv.ParseUint(have.ResourceVersion, 10, 64); err != nil || n > version || !s.valid(have) {
			continue // a later call counts this one
		}
		all++
		if string(have.Data[l.Key]) == string(made.Data[l.Key]) {
			same++
		}
	}
	if all <= l.All && (l.Key == "" || same <= l.Each) {
		return nil
	}
	err = s.core.CoreV1().Secrets(v1.Namespace).Delete(ctx, made.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &made.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return away("delete a code", err)
	}
	return ErrMany
}

// room returns ErrMany if a new Thing would exceed the limit. It may remove an old Thing first.
func (s *Store) room(ctx context.Context, there []corev1.Secret, t *Entry, l Limit) error {
	all, of := 0, map[string][]*corev1.Secret{}
	for i := range there {
		if s.valid(&there[i]) {
			all++
			value := string(there[i].Data[l.Key])
			of[value] = append(of[value], &there[i])
		}
	}
	if l.Key != "" && len(of[t.Values[l.Key]]) >= l.Each {
		return ErrMany
	}
	if all < l.All {
		return nil
	}
	oldest := l.oldest(of)
	if oldest == nil {
		return ErrMany
	}
	// A Secret that has changed since it was read isn't deleted, because the Thing is in use.
	err := s.core.CoreV1().Secrets(v1.Namespace).Delete(ctx, oldest.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &oldest.UID, ResourceVersion: &oldest.ResourceVersion}})
	switch {
	case apierrors.IsConflict(err):
		return ErrMany
	case apierrors.IsNotFound(err):
		return nil
	}
	return away("delete a code", err)
}

// oldest returns the Secret to remove first: the Secret with the earliest expiry among the Secrets with the most frequent value. It returns nil if no
// Secret may be removed.
func (l *Limit) oldest(of map[string][]*corev1.Secret) *corev1.Secret {
	if l.Drop == nil {
		return nil
	}
	var most []*corev1.Secret
	for _, same := range of {
		same = slices.DeleteFunc(same, func(have *corev1.Secret) bool { return !l.Drop(values(have)) })
		if len(same) > len(most) {
			most = same
		}
	}
	if len(most) == 0 {
		return nil
	}
	return slices.MinFunc(most, func(a, b *corev1.Secret) int {
		return cmp.Compare(string(a.Data[keyExpires]), string(b.Data[keyExpires]))
	})
}
