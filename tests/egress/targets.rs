//! What may be connected to.

use std::io::Write as _;
use std::net::TcpListener;

use toolhook::egress::{Egress, EgressError, Policy};
use url::Url;

use crate::receiver::Receiver;
use crate::{Answers, OK, OK_AND_BYE, UNREACHABLE, development, marked_public, post, send};

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let receiver = Receiver::answering(OK);
    let port = receiver.address.port();
    let policy = Policy { plain_http: true, ports: None, ..Policy::production() };
    let egress = Egress::new(policy).unwrap();
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "user@127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "x.localhost",
    ] {
        let url = format!("http://{host}:{port}/");
        assert!(egress.check_url(&url).is_err(), "{host}");
        let verdict = egress.verdict(&Url::parse(&url).unwrap()).await;
        assert!(!verdict.allowed && verdict.reason.is_some(), "{host}");
        // Also when the URL was stored before the policy was what it is.
        let error = egress.send(post(&url)).await.unwrap_err();
        assert!(matches!(error, EgressError::Blocked(_)), "{host}: {error:?}");
        assert!(!error.may_have_arrived());
        assert_eq!(error.public(), UNREACHABLE);
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a13_one_private_answer_refuses_the_whole_set() {
    let receiver = Receiver::answering(OK);
    let url = format!("http://mixed.example:{}/", receiver.address.port());
    for set in [
        &["127.0.0.2", "127.0.0.1"][..],
        &["127.0.0.1", "127.0.0.2"],
        &["127.0.0.2", "::ffff:127.0.0.2"],
        &["127.0.0.2", "169.254.169.254"],
    ] {
        let egress = Egress::with_lookup(marked_public(), Answers::new([set, set])).unwrap();
        assert!(!egress.verdict(&Url::parse(&url).unwrap()).await.allowed, "{set:?}");
        let error = egress.send(post(&url)).await.unwrap_err();
        assert!(matches!(error, EgressError::Blocked(_)), "{set:?}: {error:?}");
        assert_eq!(error.public(), UNREACHABLE);
        assert!(error.diagnostic().contains("is in "), "{}", error.diagnostic());
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a14_a_name_that_turns_private_after_it_was_checked_is_not_connected_to() {
    let receiver = Receiver::answering(OK_AND_BYE);
    let url = format!("http://flip.example:{}/", receiver.address.port());
    let answers = Answers::new([&["127.0.0.2"], &["127.0.0.2"], &["127.0.0.1"], &["169.254.169.254"]]);
    let egress = Egress::with_lookup(marked_public(), answers).unwrap();
    assert!(egress.verdict(&egress.check_url(&url).unwrap()).await.allowed);
    assert_eq!(egress.send(post(&url)).await.unwrap().status, 200);
    for _ in 0..2 {
        let error = egress.send(post(&url)).await.unwrap_err();
        assert!(matches!(error, EgressError::Blocked(_)), "{error:?}");
    }
    assert_eq!(receiver.connections(), 1);
}

/// A kept connection goes on to where it was let; no new one is made to where the name points now.
#[tokio::test]
async fn a15_a_name_that_turns_private_under_a_kept_connection_makes_no_new_one() {
    let receiver = Receiver::new(|this, connection| {
        for _ in 0..3 {
            this.read_request(connection)?;
            connection.write_all(OK)?;
        }
        Ok(())
    });
    let url = format!("http://flip.example:{}/", receiver.address.port());
    let private: &[&str] = &["127.0.0.1"];
    let answers = Answers::new([&["127.0.0.2"], private, private, private, private]);
    let egress = Egress::with_lookup(marked_public(), answers).unwrap();
    for _ in 0..3 {
        assert_eq!(egress.send(post(&url)).await.unwrap().status, 200);
    }
    // The receiver closes it now.
    while receiver.closed() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let error = egress.send(post(&url)).await.unwrap_err();
    assert!(matches!(error, EgressError::Blocked(_)), "{error:?}");
    assert_eq!((receiver.connections(), receiver.requests().len()), (1, 3));
}

#[tokio::test]
async fn blocked_refused_and_unresolved_look_alike_but_not_in_the_log() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = send(&format!("http://{closed}/")).await.unwrap_err();
    assert!(matches!(refused, EgressError::NotSent(_)), "{refused:?}");
    assert!(refused.diagnostic().contains("refused"), "{}", refused.diagnostic());

    let nowhere = Egress::with_lookup(marked_public(), Answers::new([])).unwrap();
    let empty = Egress::with_lookup(marked_public(), Answers::new([&[], &[]])).unwrap();
    let private = Egress::with_lookup(marked_public(), Answers::new([&["10.0.0.1"], &["10.0.0.1"]])).unwrap();
    let url = "http://hooks.example/";
    let mut reasons = Vec::new();
    for (egress, blocked) in [(&nowhere, false), (&empty, false), (&private, true)] {
        let error = egress.send(post(url)).await.unwrap_err();
        assert_eq!(matches!(error, EgressError::Blocked(_)), blocked, "{error:?}");
        assert!(!error.may_have_arrived());
        assert_eq!(error.public(), refused.public());
        reasons.push(egress.verdict(&Url::parse(url).unwrap()).await);
    }
    assert_eq!(reasons[0], reasons[2]);
    assert_eq!(reasons[1], reasons[2]);
}

#[tokio::test]
async fn development_reaches_this_machine_by_name() {
    let receiver = Receiver::answering(OK);
    let url = format!("http://localhost:{}/", receiver.address.port());
    let egress = development();
    let verdict = egress.verdict(&egress.check_url(&url).unwrap()).await;
    assert_eq!((verdict.allowed, verdict.reason), (true, None));
    assert_eq!(egress.send(post(&url)).await.unwrap().body, "ok");
}
