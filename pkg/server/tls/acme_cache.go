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

// ACMESecret is the name of the Secret with the data of a public CA. The Secret holds the account's key, and a certificate with its key for each
// name.
const ACMESecret = "web-acme"

const (
	// readEvery is the minimum time between two reads of the Secret, because any client can send the same requests as the CA without a limit.
	readEvery = 250 * time.Millisecond
	// readTime limits the time for a read. While a request waits for a read, autocert can't begin with another name.
	readTime = 2 * time.Second
)

// secretCache is an autocert.Cache that stores its data in one Secret. Each change is a patch of one key, so that replicas don't overwrite each
// other's changes.
type secretCache struct {
	client kubernetes.Interface

	mu   sync.Mutex
	next *reading // the read that hasn't begun

	running sync.Mutex // held by the read that has begun
	began   time.Time
}

// reading is one read of the whole Secret. All requests that arrived before its start share the result. Results aren't cached, because a CA sends its
// request as soon as another replica has written the response to a challenge.
type reading struct {
	done chan struct{}
	data map[string][]byte
	err  error
}

// keyOf returns the key in the Secret for a name. It replaces the plus sign, which is invalid in keys, with three dots, which are invalid in names.
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

// ask returns the next read, and starts it if necessary.
func (c *secretCache) ask() *reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &reading{done: make(chan struct{})}
		go c.read(c.next)
	}
	return c.next
}

// read reads the Secret. It waits until readEvery has passed since the last read began.
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

// patch sets a key of the Secret, or removes the key if data is nil.
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
