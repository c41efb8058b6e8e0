package console

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/objectferry/objectferry/internal/deadletter"
)

// look begins to look at the letters; the overview shows what it finds.
func (c *Console) look(w http.ResponseWriter, r *http.Request) {
	if err := c.desk.look(); err != nil {
		c.fail(w, err)
		return
	}
	http.Redirect(w, r, "/#letters", http.StatusSeeOther)
}

// newPlan begins to count what a redrive or a drop would move.
func (c *Console) newPlan(w http.ResponseWriter, r *http.Request) {
	q, err := strconv.Atoi(r.PostFormValue("queue"))
	if err != nil || q < 0 || q >= len(c.deps.Queues) {
		c.fail(w, errors.New("no such queue"))
		return
	}
	verb := r.PostFormValue("verb")
	if verb != "redrive" && verb != "drop" {
		c.fail(w, errors.New("neither redrive nor drop"))
		return
	}
	f := deadletter.Filter{End: r.PostFormValue("end"), Detail: r.PostFormValue("detail"), Match: r.PostFormValue("match")}
	if err := f.Validate(); err != nil {
		c.fail(w, err)
		return
	}
	id, err := c.desk.newPlan(verb == "drop", q, f)
	if err != nil {
		c.fail(w, err)
		return
	}
	http.Redirect(w, r, "/plans/"+id, http.StatusSeeOther)
}

// showPlan is the page that asks for confirmation, and later tells what was done.
func (c *Console) showPlan(w http.ResponseWriter, r *http.Request) {
	p, ok := c.desk.plan(r.PathValue("id"))
	if !ok {
		c.pages.render(w, http.StatusNotFound, "message", messageView{Title: "Not known any more", Text: "This plan is not known any more. Begin again on the overview."})
		return
	}
	c.pages.render(w, http.StatusOK, "plan", c.newPlanView(p, nil))
}

// confirmPlan does what was counted, once.
func (c *Console) confirmPlan(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	rate, _ := strconv.ParseFloat(r.PostFormValue("rate"), 64) // 0 is refused by check
	err := c.desk.confirm(id, confirmation{Rate: rate, Many: r.PostFormValue("many") == "yes",
		Discard: r.PostFormValue("keep") == "discard", Word: r.PostFormValue("word")})
	if err == nil {
		http.Redirect(w, r, "/plans/"+id, http.StatusSeeOther)
		return
	}
	p, ok := c.desk.plan(id)
	if !ok {
		c.fail(w, err)
		return
	}
	c.pages.render(w, http.StatusUnprocessableEntity, "plan", c.newPlanView(p, err))
}

// fail says why nothing was done.
func (c *Console) fail(w http.ResponseWriter, err error) {
	status := http.StatusUnprocessableEntity
	if errors.Is(err, errBusy) {
		status = http.StatusConflict
	}
	c.pages.render(w, status, "message", messageView{Title: "Nothing was done", Text: err.Error()})
}

// plot is the share from S3 as a picture.
func (c *Console) plot(w http.ResponseWriter, r *http.Request) {
	c.pages.plot(w, c.state.now(r.Context()), r.URL.Query().Get("look"))
}
