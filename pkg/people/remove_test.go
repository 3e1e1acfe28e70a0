package people_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestARemovalThatFailsHalfwayCanBeRepeated(t *testing.T) {
	c := open(t)
	c.add("root", v1.GroupAdministrators)
	c.add("bob")
	asked := 0
	stop := func(err error) func(context.Context, string) (int, error) {
		return func(ctx context.Context, user string) (int, error) {
			asked++
			assert.Equal(t, "bob", user)
			if p, err := c.Person(user); err == nil {
				assert.True(t, p.Disabled, "no job comes while others are stopped")
			}
			return 2, err
		}
	}
	_, err := people.RemoveWith(t.Context(), c.Directory, "bob", stop(errors.New("the API server is unavailable")))
	require.ErrorContains(t, err, "bob is disabled, and not removed")
	p, err := c.Person("bob")
	require.NoError(t, err)
	assert.True(t, p.Disabled)

	asked = 0
	stopped, err := people.RemoveWith(t.Context(), c.Directory, "bob", stop(nil))
	require.NoError(t, err)
	assert.Equal(t, 4, stopped)
	assert.Equal(t, 2, asked, "once before the end and once after it")
	_, err = c.Person("bob")
	require.ErrorIs(t, err, people.ErrNoUser)

	asked = 0
	_, err = people.RemoveWith(t.Context(), c.Directory, "root", stop(nil))
	require.ErrorIs(t, err, people.ErrLastAdministrator)
	_, err = people.RemoveWith(t.Context(), c.Directory, "bob", stop(nil))
	require.ErrorIs(t, err, people.ErrNoUser)
	assert.Zero(t, asked)
}

func TestWhoTakesTheNameOfAPersonThatIsBeingRemovedKeepsIt(t *testing.T) {
	c := open(t)
	c.add("root", v1.GroupAdministrators)
	before := c.add("bob")
	asked := 0
	_, err := people.RemoveWith(t.Context(), c.Directory, "bob", func(ctx context.Context, user string) (int, error) {
		asked++
		if asked == 1 { // another administrator is faster
			require.NoError(t, c.Remove(ctx, user))
			_, err := c.Add(ctx, people.NewUser{Name: user, Password: good, TakeOver: true})
			require.NoError(t, err)
		}
		return 1, nil
	})
	require.ErrorIs(t, err, people.ErrNoUser)
	assert.Equal(t, 1, asked, "the jobs of the new person go on")
	p, err := c.Person("bob")
	require.NoError(t, err)
	assert.NotEqual(t, before.UID, p.UID)
	assert.False(t, p.Disabled)
}
