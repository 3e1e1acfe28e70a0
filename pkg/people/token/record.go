package token

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// entry is a Record with the hashes that verify its token.
type entry struct {
	Record
	person types.UID // the UID of the User
	secret types.UID // the UID of the Secret
	// hash is the hash of the token or of the current refresh token.
	hash string
	// previous is the hash of the previous refresh token, which is accepted before until. next is the current refresh token, encrypted with the
	// previous refresh token.
	previous string
	until    time.Time
	next     []byte
	mark     []byte // the key of the codes in the session's refresh tokens; nil for a session that began before there were codes
	sessions int64
	version  string
}

// stored is a decoded Secret. It holds either a record or the signing keys.
type stored struct {
	entry *entry
	keys  keyring
}

var idForm = regexp.MustCompile(`^[a-z2-7]{20}$`)

func newID() string { return strings.ToLower(rand.Text()[:20]) }

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func decode(u *unstructured.Unstructured) (stored, error) {
	s := &corev1.Secret{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s); err != nil {
		return stored{}, errors.New("it can't be decoded as a Secret")
	}
	if s.Name == v1.SigningKeys {
		keys, err := parseKeys(s.Data[keysOf])
		return stored{keys: keys}, err
	}
	e, err := decodeRecord(s)
	return stored{entry: e}, err
}

func decodeRecord(s *corev1.Secret) (*entry, error) {
	d := func(key string) string { return string(s.Data[key]) }
	id, ok := strings.CutPrefix(s.Name, v1.TokenName(""))
	e := &entry{
		Record: Record{ID: id, User: d("user"), Kind: Kind(d("kind")), Via: d("via"), Label: d("label"), Client: d("client"), Address: d("address")},
		person: types.UID(d("uid")), secret: s.UID, hash: d("hash"), previous: d("previous"), next: s.Data["next"], mark: s.Data["mark"], version: s.ResourceVersion,
	}
	switch {
	case !ok || !idForm.MatchString(id):
		return nil, errors.New("its name is not the name of a token")
	case e.Kind != KindSession && e.Kind != KindBrowser && e.Kind != KindApplication:
		return nil, fmt.Errorf("kind: %q is not a kind of token", e.Kind)
	case e.User == "" || e.person == "" || len(e.hash) != 2*sha256.Size:
		return nil, errors.New("user, uid or hash is missing")
	}
	var err error
	if text := d("scopes"); text != "" {
		if e.Scopes, err = rules.ParseScopes(strings.Split(text, ",")); err != nil {
			return nil, err
		}
	}
	if e.sessions, err = strconv.ParseInt(d("sessions"), 10, 64); err != nil {
		return nil, errors.New("sessions: it is not a number")
	}
	for key, to := range map[string]*time.Time{"created": &e.Created, "expires": &e.Expires, "used": &e.Used, "until": &e.until} {
		if text := d(key); text != "" {
			if *to, err = time.Parse(time.RFC3339Nano, text); err != nil {
				return nil, fmt.Errorf("%s: it is not a time", key)
			}
		}
	}
	if e.Created.IsZero() {
		return nil, errors.New("created is missing")
	}
	return e, nil
}

func (e *entry) object() (*unstructured.Unstructured, error) {
	at := func(t time.Time) []byte {
		if t.IsZero() {
			return nil
		}
		return []byte(t.UTC().Format(time.RFC3339Nano))
	}
	scopes := make([]string, len(e.Scopes))
	for i, s := range e.Scopes {
		scopes[i] = string(s)
	}
	data := map[string][]byte{
		"user": []byte(e.User), "uid": []byte(e.person), "kind": []byte(e.Kind), "hash": []byte(e.hash), "sessions": []byte(strconv.FormatInt(e.sessions, 10)),
		"scopes": []byte(strings.Join(scopes, ",")), "via": []byte(e.Via), "label": []byte(e.Label), "client": []byte(e.Client), "address": []byte(e.Address),
		"created": at(e.Created), "expires": at(e.Expires), "used": at(e.Used),
		"previous": []byte(e.previous), "until": at(e.until), "next": e.next, "mark": e.mark,
	}
	for k, v := range data {
		if len(v) == 0 {
			delete(data, k)
		}
	}
	return toObject(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: v1.TokenName(e.ID), Namespace: v1.Namespace, ResourceVersion: e.version,
			Labels: map[string]string{v1.LabelPeople: v1.SecretToken, v1.LabelUser: e.User}},
		Data: data,
	})
}

func toObject(s *corev1.Secret) (*unstructured.Unstructured, error) {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	return &unstructured.Unstructured{Object: m}, err
}

func (e *entry) expired(now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

func (s *Service) create(ctx context.Context, e *entry) error {
	object, err := e.object()
	if err != nil {
		return err
	}
	made, err := s.secrets.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return away("write a token", err)
	}
	s.objects.Put(made)
	return nil
}

// live reads a record from the API server. It returns people.ErrUnavailable if line has no free slot, and ErrNone if the record doesn't exist.
func (s *Service) live(ctx context.Context, id string, line chan struct{}) (*entry, error) {
	if s.missing(id) {
		return nil, ErrNone
	}
	select {
	case line <- struct{}{}:
		defer func() { <-line }()
	default:
		return nil, fmt.Errorf("%w: too many tokens are being looked up", people.ErrUnavailable)
	}
	u, err := s.secrets.Get(ctx, v1.TokenName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.remember(id)
		return nil, ErrNone
	}
	if err != nil {
		return nil, away("read a token", err)
	}
	got, err := decode(u)
	if err != nil {
		return nil, ErrNone
	}
	s.objects.Put(u)
	return got.entry, nil
}

// drop deletes a record in the API server and in the memory of this replica.
func (s *Service) drop(ctx context.Context, e *entry) error {
	err := s.secrets.Delete(ctx, v1.TokenName(e.ID), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.secret}})
	if err != nil && !apierrors.IsNotFound(err) {
		return away("revoke a token", err)
	}
	s.objects.Drop(v1.TokenName(e.ID), e.secret)
	return nil
}

// away wraps an error of the API server in people.ErrUnavailable, because the state of the token is then unknown.
func away(what string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", people.ErrUnavailable, what, err)
}

func isNone(err error) bool { return errors.Is(err, ErrNone) }

// line removes control characters from a client's text, and shortens the text.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	for len(text) > maxLine {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// maxLine is the maximum length of a stored label, client name or address, in bytes.
const maxLine = 200
