package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
)

// firstLife is the lifetime of the code for the first administrator.
const firstLife = 24 * time.Hour

const keyExpires = "expires"

// ErrCode means that a one-time code was used, has expired, or never existed.
var ErrCode = errors.New("the code is not valid, was used, or has expired")

// OfferFirst creates a one-time code, which a client can use to create the first administrator. It invalidates an earlier code. If an administrator
// can already sign in, OfferFirst returns an unset code.
func (d *Directory) OfferFirst(ctx context.Context) (code secret.String, until time.Time, err error) {
	if err := d.Prepare(ctx); err != nil {
		return "", until, err
	}
	there, err := d.HasAdministrator(ctx)
	if err != nil || there {
		return "", until, err
	}
	code, until = secret.String(rand.Text()), time.Now().Add(firstLife).UTC().Truncate(time.Second)
	return code, until, d.putSecret(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: v1.FirstAdministrator, Namespace: v1.Namespace, Labels: map[string]string{v1.LabelPeople: v1.SecretOnce}},
		Data:       map[string][]byte{keyHash: []byte(hashed(code)), keyExpires: []byte(until.Format(time.RFC3339))},
	})
}

func hashed(s secret.String) string {
	sum := sha256.Sum256([]byte(s.Reveal()))
	return hex.EncodeToString(sum[:])
}

// UseFirst creates the first administrator with a code from OfferFirst. If two requests use the same code, only one succeeds. The other gets ErrCode.
func (d *Directory) UseFirst(ctx context.Context, code secret.String, n NewUser) (*Person, error) {
	s, err := d.core.CoreV1().Secrets(v1.Namespace).Get(ctx, v1.FirstAdministrator, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrCode
	}
	if err != nil {
		return nil, explain(err)
	}
	until, err := time.Parse(time.RFC3339, string(s.Data[keyExpires]))
	if err != nil || !time.Now().Before(until) || subtle.ConstantTimeCompare(s.Data[keyHash], []byte(hashed(code))) != 1 {
		return nil, ErrCode
	}
	if !n.Password.IsSet() {
		return nil, invalid("password", "it is needed")
	}
	if err := d.Load(ctx); err != nil {
		return nil, err
	}
	group, err := d.AdministratorGroup()
	if err != nil {
		return nil, err // and the code stays valid
	}
	if !slices.Contains(n.Groups, group) {
		n.Groups = append(slices.Clone(n.Groups), group, v1.GroupDefault)
	}
	if err := d.CheckNew(n); err != nil {
		return nil, err
	}
	if err := d.unowned(ctx, n); err != nil {
		return nil, err
	}
	if there, err := d.HasAdministrator(ctx); err != nil {
		return nil, err
	} else if there {
		return nil, ErrCode
	}
	err = d.core.CoreV1().Secrets(v1.Namespace).Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil, ErrCode // another request was faster
	}
	if err != nil {
		return nil, explain(err)
	}
	p, err := d.Add(ctx, n)
	if err != nil {
		return nil, hint.Wrap(fmt.Errorf("the code is used up, and the person wasn't added: %w", err), "get another code with: paictl service start -n rest-server")
	}
	return p, nil
}
