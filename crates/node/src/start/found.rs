//! Founding: a cluster is born because someone asks for it, and with its first node.

use engine::control::{Found, NewNode};
use model::{ClusterSecret, NodeId, NodeName, RegionName, ZoneName};
use replica::Replicas;
use replica::peer::Tls;
use store::{Identity, OpenError, Start, Store};
use tracing::info;

use super::{
    Environment, Member, Settings, StartError, identity, replica_settings, store_settings, tls,
};

/// The node that founds a cluster.
const FOUNDER: NodeId = NodeId(1);

/// What a node by itself is called, and where it is.
const ALONE: &str = "local";
const GRAMMATICAL: &str = "it follows the grammar";

/// Founds a cluster in the empty folder of `settings`, and gives its id.
///
/// # Errors
/// [`StartError`], also where the folder holds a node already.
pub async fn init(settings: &Settings, environment: &Environment) -> Result<String, StartError> {
    let existing = store_settings(settings, Start::Existing);
    let store = match environment.disk.open(existing) {
        // An interrupted founding is taken up where it ended.
        Ok(store) => store,
        Err(OpenError::Empty { .. }) => new_store(settings, environment, tls::load(settings)?)?,
        Err(other) => return Err(other.into()),
    };
    identity::check(settings, &store)?;
    let cluster = store.identity().cluster.clone();
    found(settings, environment, &store).await?;
    Ok(cluster)
}

/// Makes the empty folder that of the first node of a new cluster. Its id is the one that the
/// node's certificate names; without one it is chosen by chance.
pub(super) fn new_store(
    settings: &Settings,
    environment: &Environment,
    tls: Option<Tls>,
) -> Result<Store, StartError> {
    let cluster = match tls {
        Some(tls) => tls.cluster().to_owned(),
        None => format!("{:032x}", u128::from_be_bytes(environment.chance.bytes()?)),
    };
    let identity = Identity {
        cluster,
        node: FOUNDER,
        called: settings.member.as_ref().map(Member::called),
    };
    let new = store_settings(settings, Start::New(identity));
    Ok(environment.disk.open(new)?)
}

/// Founds the cluster of a new store.
pub(super) async fn found(
    settings: &Settings,
    environment: &Environment,
    store: &Store,
) -> Result<(), StartError> {
    let chance = &environment.chance;
    let found = Found {
        secret: ClusterSecret(chance.bytes()?),
        cluster: store.identity().cluster.clone(),
        node: new_node(settings, chance.bytes()?),
        shards_per_region: settings.shards,
        registries: settings.registries,
    };
    let replica_settings = replica_settings(settings, FOUNDER);
    let founded = Replicas::found(replica_settings, store, environment.clock, found).await;
    founded.map_err(|source| {
        let folder = settings.data_dir.clone();
        match source {
            replica::StartError::AlreadyFounded => StartError::Founded { folder },
            source => StartError::Replicas { folder, source },
        }
    })?;
    info!(folder = %settings.data_dir.display(), "founded a new cluster");
    Ok(())
}

/// What the cluster knows of this node.
pub(super) fn new_node(settings: &Settings, join: [u8; 16]) -> NewNode {
    let listen = settings.listen.to_string();
    match &settings.member {
        // A node by itself has no names to be told apart by, and no peers that could ask.
        None => NewNode {
            name: NodeName::parse(ALONE).expect(GRAMMATICAL),
            region: RegionName::parse(ALONE).expect(GRAMMATICAL),
            zone: ZoneName::parse(ALONE).expect(GRAMMATICAL),
            peer_address: listen.clone(),
            client_address: listen,
            join,
        },
        Some(Member {
            name,
            region,
            zone,
            peer_address,
            client_address,
            ..
        }) => NewNode {
            name: name.clone(),
            region: region.clone(),
            zone: zone.clone(),
            peer_address: peer_address.clone(),
            client_address: client_address.clone(),
            join,
        },
    }
}
