package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/secret"
)

// Copy is the configuration that a cluster stores, with its secrets.
type Copy struct {
	Revision Revision
	// Files contains the files exactly as they were pushed, with their secrets.
	Files map[string][]byte

	shown map[string][]byte
	parts credentials
}

// Private reports whether only the owner may read a file.
func (c *Copy) Private(name string) bool {
	return len(c.parts[name]) > 0 || name == config.ServicesFile
}

// Masked returns the files with secret.Mask in place of each secret.
func (c *Copy) Masked() map[string][]byte {
	out := map[string][]byte{}
	for name, text := range c.shown {
		// Quote the mask, so that the files are valid YAML.
		out[name] = bytes.ReplaceAll(text, []byte(Reference), []byte(`"`+secret.Mask+`"`))
	}
	return out
}

type objects struct {
	config  *corev1.ConfigMap // nil if it doesn't exist
	secret  *corev1.Secret    // nil if it doesn't exist
	head    Revision
	history []Revision // before head, the latest first
}

// get reads the ConfigMap and the Secret concurrently.
func (s *Store) get(ctx context.Context) (*objects, error) {
	var o objects
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		o.config, err = s.client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			o.config, err = nil, nil
		}
		return err
	})
	g.Go(func() (err error) {
		o.secret, err = s.getSecret(ctx)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	if o.config == nil {
		return &o, nil
	}
	var err error
	if o.head, err = revisionOf(o.config); err != nil {
		return nil, err
	}
	o.history, err = historyOf(o.config)
	return &o, err
}

func (s *Store) getSecret(ctx context.Context) (*corev1.Secret, error) {
	secret, err := s.client.CoreV1().Secrets(kube.SystemNamespace).Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return secret, err
}

// readAttempts limits how often the ConfigMap and the Secret are read. The two objects don't match if a push occurs between the two reads.
const readAttempts = 3

// copyOf returns the configuration in the objects. If the objects don't match because of a push, it reads the objects again. It returns ErrNone if
// the cluster has no configuration.
func (s *Store) copyOf(ctx context.Context, o *objects) (*Copy, error) {
	for attempt := 1; ; attempt++ {
		if o.config == nil {
			return nil, ErrNone
		}
		c, err := open(o.config, o.secret, o.head)
		if err == nil || !errors.Is(err, errEntry) || attempt == readAttempts {
			return c, err
		}
		if o, err = s.get(ctx); err != nil {
			return nil, err
		}
	}
}

// errEntry means that the Secret doesn't contain the credentials of a revision.
var errEntry = errors.New("no entry")

func open(cm *corev1.ConfigMap, from *corev1.Secret, r Revision) (*Copy, error) {
	shown, err := unpack(cm)
	if err != nil {
		return nil, err
	}
	parts, err := readEntry(from, r)
	if err != nil {
		return nil, err
	}
	c := &Copy{Revision: r, Files: map[string][]byte{}, shown: shown, parts: parts}
	for _, name := range config.Files() {
		if c.Files[name], err = join(name, shown[name], parts[name]); err != nil {
			return nil, fmt.Errorf("read revision %d: %w", r.Number, err)
		}
	}
	return c, nil
}

// Pull returns the current configuration with its secrets. It returns ErrNone if the cluster has no configuration.
func (s *Store) Pull(ctx context.Context) (*Copy, error) {
	o, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.copyOf(ctx, o)
}

// Load returns the current configuration, decoded and with its secrets. It doesn't write to the disk. It returns ErrNone if the cluster has no
// configuration.
func (s *Store) Load(ctx context.Context) (*config.Cluster, Revision, error) {
	c, err := s.Pull(ctx)
	if err != nil {
		return nil, Revision{}, err
	}
	cluster, err := config.Parse("", c.Files)
	if err != nil {
		return nil, c.Revision, fmt.Errorf("read the cluster's configuration, revision %d: %w", c.Revision.Number, err)
	}
	return cluster, c.Revision, nil
}

// Current returns the current revision, which contains the cluster ID. It returns ErrNone if the cluster has no configuration.
func (s *Store) Current(ctx context.Context) (Revision, error) {
	history, err := s.History(ctx)
	if err != nil {
		return Revision{}, err
	}
	return history[0], nil
}

// ID returns the cluster ID. It returns ErrNone if the cluster has no configuration.
func (s *Store) ID(ctx context.Context) (string, error) {
	r, err := s.Current(ctx)
	return r.ClusterID, err
}

// History returns all revisions, beginning with the current revision. It returns ErrNone if the cluster has no configuration.
func (s *Store) History(ctx context.Context) ([]Revision, error) {
	cm, err := s.client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	head, err := revisionOf(cm)
	if err != nil {
		return nil, err
	}
	history, err := historyOf(cm)
	return append([]Revision{head}, history...), err
}

// At returns the configuration of the revision with the given number.
func (s *Store) At(ctx context.Context, number int) (*Copy, error) {
	o, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.at(ctx, o, number)
}

func (s *Store) at(ctx context.Context, o *objects, number int) (*Copy, error) {
	if o.config == nil {
		return nil, ErrNone
	}
	if number == o.head.Number {
		return s.copyOf(ctx, o)
	}
	for _, r := range o.history {
		if r.Number != number {
			continue
		}
		cm, err := s.client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, archiveName(number), metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read revision %d: %w", number, err)
		}
		return open(cm, o.secret, r)
	}
	return nil, hint.Errorf("see: paictl config history", "revision %d does not exist", number)
}
