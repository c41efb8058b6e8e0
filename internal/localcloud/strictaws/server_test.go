package strictaws_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.uber.org/goleak"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func TestCloseLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cloud := strictaws.New(strictaws.Config{})
	cloud.CreateBucket("media", strictaws.Bucket{})
	if err := cloud.CreateQueue("jobs", nil); err != nil {
		t.Fatal(err)
	}
	server, err := cloud.Serve()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Cloud: cloud, Server: server}
	r.s3, r.sqs = r.clients(secretKey)
	cloud.Faults().Add(strictaws.Fault{Action: "PutObject", Do: strictaws.Hang{}})
	ended := make(chan error, 2)
	go func() { _, err := r.tryPut(context.Background(), "k"); ended <- err }()
	go func() {
		_, err := r.sqs.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: r.queueURL("jobs"), WaitTimeSeconds: 20})
		ended <- err
	}()
	for cloud.Count("", "", "").Calls < 2 {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	server.Close()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a call was answered by a closed server")
		}
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
}

func TestCloudsOfOneProcessShareNothing(t *testing.T) {
	a, b := newRig(t, strictaws.Config{}), newRig(t, strictaws.Config{})
	a.put(t, "k", "x")
	a.send(t, "x", nil)
	if n := len(b.Keys("media")) + b.Depth("jobs").Total() + b.Count("", "", "").Calls; n != 0 {
		t.Errorf("the other cloud has it, too")
	}
}
