package tls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme/autocert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// ACMESecret has what a public authority gave: the account's key, and for each name a certificate with its key.
const ACMESecret = "web-acme"

const (
	// readEvery is the time between two readings of the Secret: strangers can ask for what an authority asks for, as often as they like.
	readEvery = 250 * time.Millisecond
	// readTime bounds a reading. autocert can't begin with a name while someone waits for one.
	readTime = 2 * time.Second
)

// secretCache is autocert.Cache in one Secret. Each change is of one key, so that replicas don't undo each other's.
type secretCache struct {
	client kubernetes.Interface

	mu   sync.Mutex
	next *reading // the one that hasn't begun

	running sync.Mutex // is held by the one that has
	began   time.Time
}

// reading is one of the whole Secret, for all who asked before it began. Nothing is remembered: an authority asks as soon as another replica has
// written what it wants to see.
type reading struct {
	done chan struct{}
	data map[string][]byte
	err  error
}

// keyOf is the key of a name in the Secret. Names have letters that keys may not have; none has three dots.
func keyOf(name string) string { return strings.ReplaceAll(name, "+", "...") }

// Get implements autocert.Cache.
func (c *secretCache) Get(ctx context.Context, name string) ([]byte, error) {
	r := c.ask()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.done:
	}
	if r.err != nil {
		return nil, r.err
	}
	data, ok := r.data[keyOf(name)]
	if !ok {
		return nil, autocert.ErrCacheMiss
	}
	return data, nil
}

// ask joins the next reading.
func (c *secretCache) ask() *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &reading{done: make(chan struct{})}
		go c.read(c.next)
	}
	return c.next
}

// read reads the Secret when it is time.
func (c *secretCache) read(r *reading) {
	c.running.Lock()
	defer c.running.Unlock()
	defer close(r.done)
	time.Sleep(time.Until(c.began.Add(readEvery)))
	c.mu.Lock()
	c.next = nil
	c.mu.Unlock()
	c.began = time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	s, err := c.client.CoreV1().Secrets(Namespace).Get(ctx, ACMESecret, metav1.GetOptions{})
	switch {
	case err == nil:
		r.data = s.Data
	case !apierrors.IsNotFound(err):
		r.err = fmt.Errorf("read the Secret %s/%s: %w", Namespace, ACMESecret, err)
	}
}

// Put implements autocert.Cache.
func (c *secretCache) Put(ctx context.Context, name string, data []byte) error {
	err := c.patch(ctx, name, data)
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = c.client.CoreV1().Secrets(Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: ACMESecret, Namespace: Namespace}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{keyOf(name): data},
	}, metav1.CreateOptions{FieldManager: "paictl"})
	if apierrors.IsAlreadyExists(err) {
		return c.patch(ctx, name, data)
	}
	if err != nil {
		return fmt.Errorf("make the Secret %s/%s: %w", Namespace, ACMESecret, err)
	}
	return nil
}

// Delete implements autocert.Cache.
func (c *secretCache) Delete(ctx context.Context, name string) error {
	if err := c.patch(ctx, name, nil); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// patch sets a key, or takes it away where data is nil.
func (c *secretCache) patch(ctx context.Context, name string, data []byte) error {
	body, err := json.Marshal(map[string]any{"data": map[string][]byte{keyOf(name): data}})
	if err != nil {
		return err
	}
	if _, err := c.client.CoreV1().Secrets(Namespace).Patch(ctx, ACMESecret, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "paictl"}); err != nil {
		return fmt.Errorf("write the Secret %s/%s: %w", Namespace, ACMESecret, err)
	}
	return nil
}
