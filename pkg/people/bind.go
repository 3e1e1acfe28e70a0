package people

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/hint"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

// ErrMoved means that the configured issuer or directory of a provider differs from the source with which people were linked. A subject, for example
// "7", may be another person in the new source.
var ErrMoved = errors.New("the provider has another source")

// keySource is the key for the issuer or the directory in the Secret of a provider.
const keySource = "source"

// Bind stores the issuer or directory of a provider at its first use. If the source has changed later, Bind returns ErrMoved. An operator can set
// movedFrom to the stored source to confirm that the new source contains the same people. Bind then stores the new source, and deletes the refresh
// tokens of the earlier source.
func (d *Directory) Bind(ctx context.Context, provider, source, movedFrom string) error {
	if source == "" {
		return nil
	}
	for range tries {
		err := d.bind(ctx, provider, source, movedFrom)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) { // otherwise another replica has written it
			return explain(err)
		}
	}
	return fmt.Errorf("%w: the Secret %s changes all the time", ErrUnavailable, v1.ProviderName(provider))
}

func (d *Directory) bind(ctx context.Context, provider, source, movedFrom string) error {
	secrets := d.core.CoreV1().Secrets(v1.Namespace)
	have, err := secrets.Get(ctx, v1.ProviderName(provider), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: v1.ProviderName(provider), Namespace: v1.Namespace,
			Labels: map[string]string{v1.LabelPeople: v1.SecretProvider}}, Data: map[string][]byte{keySource: []byte(source)}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return fmt.Errorf("read the Secret %s: %w", v1.ProviderName(provider), err)
	}
	switch string(have.Data[keySource]) {
	case source:
		return nil
	case movedFrom:
	default:
		return hint.Errorf(fmt.Sprintf("give the new one another name in signIn; if the people and their subjects are the same there, set movedFrom of %s to %q", provider, have.Data[keySource]),
			"%w: %s was %s when people were linked with it, and is %s", ErrMoved, provider, have.Data[keySource], source)
	}
	if err := d.Load(ctx); err != nil {
		return err
	}
	for _, p := range d.Users() {
		for _, id := range p.User.Spec.Identities {
			if id.Provider != provider {
				continue
			}
			if err := d.KeepRefresh(ctx, p, id, ""); err != nil {
				return err
			}
		}
	}
	have.Data[keySource] = []byte(source)
	_, err = secrets.Update(ctx, have, metav1.UpdateOptions{})
	return err
}
