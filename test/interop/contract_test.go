package interop

import "testing"

// rule is something that AWS does and objectferry builds on.
type rule struct {
	name  string
	lacks lacks
	// check does what objectferry does and returns how the rule was broken. What
	// is only its setting ends the test itself.
	check func(*testing.T, *cloud) error
}

// lacks is what the table of features says of one rule: the clouds that do not
// guarantee it, by name, and what they do instead.
type lacks map[string]string

// contract checks the rules on both clouds.
func contract(t *testing.T, rules []rule) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start func(*testing.T) *cloud
	}{{"strictaws", strict}, {"moto", moto}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cloud := c.start(t)
			for _, r := range rules {
				t.Run(r.name, func(t *testing.T) {
					t.Parallel()
					r.on(t, cloud)
				})
			}
		})
	}
}

// on checks the rule. Where the cloud is known to lack it, it says what came
// instead; when it lacks it no more, the table is wrong.
func (r rule) on(t *testing.T, c *cloud) {
	err := r.check(t, c)
	instead, lacking := r.lacks[c.name]
	switch {
	case lacking && err == nil:
		t.Errorf("%s guarantees this after all; the table says that it %s", c.name, instead)
	case lacking:
		t.Logf("%s cannot check %q: it %s (%v)", c.name, r.name, instead, err)
	case err != nil:
		t.Error(err)
	}
}
